// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq/zmq_front.hpp"

#include "kernel-manager/jupyter/zmq/file_watch.hpp"
#include "kernel-manager/jupyter/zmq/private_directory.hpp"
#include "kernel-manager/jupyter/zmq/zmq_session.hpp"

#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

namespace cellkeep::jupyter {
namespace {

/// A session id as long as they get, to know at the start whether every endpoint will fit.
constexpr const char* kLongestId = "ses_000000000000000000000000";

constexpr std::string_view kFilePrefix = "kernel-";
constexpr std::string_view kFileSuffix = ".json";

/// Where short-lived sockets belong, if the system has such a place.
std::string runtime_directory() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing in this program sets the environment.
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    const bool usable =
        runtime != nullptr && runtime[0] == '/' && ::access(runtime, W_OK | X_OK) == 0;
    return usable ? runtime : "/tmp";
}

Result<PrivateDirectory> open_socket_directory(
    const ZmqFrontConfig& config, const std::string& left) {
    if (!left.empty()) {
        auto adopted = PrivateDirectory::adopt(left);
        if (adopted.has_value()) {
            return adopted;
        }
        config.log(adopted.error().message());
    }
    return config.socket_directory.empty() ? PrivateDirectory::make_temporary(runtime_directory())
                                           : PrivateDirectory::open(config.socket_directory);
}

std::string name_file(std::string_view session_id) {
    return std::string(kFilePrefix).append(session_id).append(kFileSuffix);
}

/// The session whose connection file has that name. Empty: no connection file's.
std::string_view session_of(std::string_view name) {
    if (!name.starts_with(kFilePrefix) || !name.ends_with(kFileSuffix)) {
        return {};
    }
    return name.substr(kFilePrefix.size(), name.size() - kFilePrefix.size() - kFileSuffix.size());
}

/// What one session has here.
struct Place {
    std::shared_ptr<session::Session> session;
    OwnedFiles file;
    /// Where to bind when the file is opened.
    protocol::ConnectionInfo connection;
    std::shared_ptr<ZmqSession> front;  // null before that
};

}  // namespace

struct ZmqFront::State {
    boost::asio::io_context& io;
    ZmqFrontConfig config;
    // Destroyed in reverse: first the sessions' sockets and files, then the context, which waits
    // for what they still send, and then the directories, empty by now.
    PrivateDirectory directory;
    PrivateDirectory socket_directory;
    ZmqContext context;
    std::map<std::string, Place, std::less<>> places;
    /// Null: over tcp, or where none is to be had; sockets are bound at once then.
    std::shared_ptr<FileWatch> watch;
    /// Of sessions that have not come yet.
    std::map<std::string, PassedZmqSession, std::less<>> left{};
    bool binds_what_is_left = false;  // at once, and not when its file is opened
    bool holding = false;
    WorkThread work_thread{};  // checks long messages

    void log(const std::string& line) const {
        if (config.log) {
            config.log(line);
        }
    }
    std::string file_of(std::string_view session_id) const {
        return directory.path() + "/" + name_file(session_id);
    }
    Status serve(Place& place, BoundSockets sockets);
    Status bind(Place& place);
    void keep(Place place);
};

/// Its connection file is written.
void ZmqFront::State::keep(Place place) {
    const std::string id = place.session->id();
    place.file.add(file_of(id));
    place.session->set_connection_file(file_of(id));
    places.insert_or_assign(id, std::move(place));
}

Status ZmqFront::State::serve(Place& place, BoundSockets sockets) {
    ZmqSessionConfig session_config;
    session_config.stall_max = config.stall_max;
    session_config.log = config.log;
    session_config.work_thread = &work_thread;
    BOOST_OUTCOME_TRY(
        place.front,
        ZmqSession::create(io, std::move(sockets), place.session, std::move(session_config)));
    if (holding) {
        place.front->hold();
    }
    return ok();
}

/// Where the connection file says, or over tcp where there is room, if it does not say yet.
Status ZmqFront::State::bind(Place& place) {
    BOOST_OUTCOME_TRY(
        BoundSockets sockets,
        place.connection.key.empty()
            ? bind_loopback_sockets(context, config.high_water_mark)
            : bind_given_sockets(context, place.connection, config.high_water_mark));
    place.connection = sockets.connection;
    return serve(place, std::move(sockets));
}

Result<std::unique_ptr<ZmqFront>> ZmqFront::create(
    boost::asio::io_context& io, ZmqFrontConfig config, ZmqLeft left) {
    if (!config.log) {
        config.log = [](const std::string& /*line*/) {};
    }
    BOOST_OUTCOME_TRY(PrivateDirectory directory, PrivateDirectory::open(config.directory));
    // Files of a server that was killed name sockets that no server has.
    directory.remove_files("kernel-ses_", std::string(kFileSuffix), [&left](const auto& name) {
        return left.values.sessions.contains(session_of(name));
    });
    BOOST_OUTCOME_TRY(
        PrivateDirectory sockets, open_socket_directory(config, left.values.socket_directory));
    config.socket_directory = sockets.path();
    if (config.transport == protocol::Transport::kIpc) {
        BOOST_OUTCOME_TRY(name_ipc_sockets(sockets.path() + "/" + kLongestId));
    }
    BOOST_OUTCOME_TRY(ZmqContext context, ZmqContext::create());
    std::unique_ptr<State> state(new State{
        io,
        std::move(config),
        std::move(directory),
        std::move(sockets),
        std::move(context),
        {},
        nullptr});
    state->left = std::move(left.values.sessions);
    std::unique_ptr<ZmqFront> front(new ZmqFront(std::move(state)));
    if (front->state_->config.transport == protocol::Transport::kIpc) {
        front->watch_files(std::move(left.watch));
    }
    return front;
}

ZmqFront::ZmqFront(std::unique_ptr<State> state) : state_(std::move(state)) {}

ZmqFront::~ZmqFront() {
    stop();
    for (const auto& [id, place] : state_->places) {
        if (place.front != nullptr) {
            place.front->close();
        }
    }
}

void ZmqFront::stop() {
    if (state_->watch != nullptr) {
        state_->watch->close();
    }
}

void ZmqFront::watch_files(UniqueFd passed) {
    FileWatch::Events events;
    events.on_opened = [this](const std::string& name) { on_file_opened(name); };
    events.on_lost = [this] {
        for (const auto& [id, place] : state_->places) {
            on_file_opened(name_file(id));
        }
    };
    // Without the one that passed nobody knows which files were opened in between.
    state_->binds_what_is_left = !passed;
    auto watch = passed
                     ? FileWatch::go_on(state_->io, std::move(passed), std::move(events))
                     : FileWatch::create(state_->io, state_->directory.path(), std::move(events));
    if (watch.has_error()) {
        state_->log(
            "every session gets its Jupyter sockets at once, because the server cannot see when "
            "its connection file is opened: " +
            watch.error().message());
        return;
    }
    state_->watch = std::move(watch).value();
}

void ZmqFront::on_file_opened(const std::string& name) {
    const auto found = state_->places.find(session_of(name));
    if (found == state_->places.end() || found->second.front != nullptr) {
        return;  // our own temporary file, or one more reader
    }
    if (const Status bound = state_->bind(found->second); bound.has_error()) {
        state_->log(
            "the Jupyter sockets of " + found->first +
            " cannot be opened: " + bound.error().message());
    }
}

Status ZmqFront::on_session_created(const std::shared_ptr<session::Session>& session) {
    if (auto left = state_->left.extract(session->id()); !left.empty()) {
        const Status gone_on = go_on(session, std::move(left.mapped()));
        if (gone_on.has_value()) {
            return ok();
        }
        state_->log(
            "the Jupyter sockets of " + session->id() +
            " are new ones, and its connection file, too: " + gone_on.error().message());
    }
    return with_context(begin(session), "open the Jupyter sockets of " + session->id());
}

Status ZmqFront::begin(const std::shared_ptr<session::Session>& session) {
    const std::string& id = session->id();
    Place place;
    place.session = session;
    if (state_->config.transport == protocol::Transport::kIpc) {
        BOOST_OUTCOME_TRY(
            place.connection, name_ipc_sockets(state_->socket_directory.path() + "/" + id));
    }
    if (state_->watch == nullptr) {
        BOOST_OUTCOME_TRY(state_->bind(place));
    }
    place.connection.kernel_name = session->info().language;
    BOOST_OUTCOME_TRY(protocol::write_connection_file(state_->file_of(id), place.connection));
    state_->keep(std::move(place));
    return ok();
}

/// Where it was, with its key: the file stays as it is.
Status ZmqFront::go_on(const std::shared_ptr<session::Session>& session, PassedZmqSession passed) {
    Place place;
    place.session = session;
    place.connection = passed.connection;
    if (passed.bound || state_->watch == nullptr || state_->binds_what_is_left) {
        BOOST_OUTCOME_TRY(state_->bind(place));
        BOOST_OUTCOME_TRY(place.front->go_on(std::move(passed)));
    }
    const std::string path = state_->file_of(session->id());
    if (::access(path.c_str(), F_OK) != 0) {
        BOOST_OUTCOME_TRY(protocol::write_connection_file(path, place.connection));
    }
    state_->keep(std::move(place));
    return ok();
}

void ZmqFront::end_taking_over() {
    for (const auto& [id, passed] : std::exchange(state_->left, {})) {
        // Ignored: it names sockets that nobody has.
        (void)::unlink(state_->file_of(id).c_str());
    }
}

std::optional<std::string> ZmqFront::find_work(const session::Session& session) const {
    const auto found = state_->places.find(session.id());
    const bool bound = found != state_->places.end() && found->second.front != nullptr;
    return bound ? found->second.front->find_work() : std::nullopt;
}

std::vector<std::string> ZmqFront::find_connected() const {
    std::vector<std::string> names;
    for (const auto& [id, place] : state_->places) {
        if (place.front != nullptr && place.front->is_subscribed()) {
            names.push_back(
                id + " (a client is connected over ZeroMQ, and the other program knows none)");
        }
    }
    return names;
}

void ZmqFront::hold() {
    state_->holding = true;
    for (const auto& [id, place] : state_->places) {
        if (place.front != nullptr) {
            place.front->hold();
        }
    }
}

void ZmqFront::resume() {
    state_->holding = false;
    std::vector<std::shared_ptr<ZmqSession>> fronts;  // a request may end a session
    for (const auto& [id, place] : state_->places) {
        if (place.front != nullptr) {
            fronts.push_back(place.front);
        }
    }
    for (const auto& front : fronts) {
        front->resume();
    }
}

Status ZmqFront::collect() {
    for (const auto& [id, place] : state_->places) {
        if (place.front != nullptr) {
            BOOST_OUTCOME_TRY(place.front->collect());
        }
    }
    return ok();
}

std::size_t ZmqFront::passed_bytes() const {
    std::size_t bytes = 0;
    for (const auto& [id, place] : state_->places) {
        bytes += kPassedZmqBesidesBytes;
        bytes += place.front != nullptr ? place.front->passed_bytes() : 0;
    }
    return bytes;
}

ZmqLeft ZmqFront::pass_on() {
    ZmqLeft left;
    left.values.socket_directory = state_->socket_directory.path();
    for (auto& [id, place] : state_->places) {
        PassedZmqSession passed;
        if (place.front != nullptr) {
            passed = std::exchange(place.front, nullptr)->pass_on();
        }
        place.session.reset();  // it passes next
        passed.connection = place.connection;
        left.values.sessions.emplace(id, std::move(passed));
    }
    const auto watch = std::exchange(state_->watch, nullptr);
    if (watch != nullptr && !state_->places.empty()) {  // else its directory may go
        left.watch = watch->pass_on();
    }
    return left;
}

void ZmqFront::leave_files() {
    if (state_->places.empty()) {
        return;
    }
    for (auto& [id, place] : state_->places) {
        place.file.leave();
    }
    state_->directory.leave();
    state_->socket_directory.leave();
}

void ZmqFront::on_session_closed(const std::string& session_id) {
    const auto found = state_->places.find(session_id);
    if (found != state_->places.end()) {
        if (found->second.front != nullptr) {
            found->second.front->close();
        }
        state_->places.erase(found);
    }
}

std::size_t ZmqFront::count_held(const std::string& session_id) const {
    const auto found = state_->places.find(session_id);
    const bool bound = found != state_->places.end() && found->second.front != nullptr;
    return bound ? found->second.front->held() : 0;
}

const PeerLog* ZmqFront::find_log(const std::string& session_id) const {
    const auto found = state_->places.find(session_id);
    const bool bound = found != state_->places.end() && found->second.front != nullptr;
    return bound ? &found->second.front->log() : nullptr;
}

const ZmqFrontConfig& ZmqFront::config() const {
    return state_->config;
}

}  // namespace cellkeep::jupyter
