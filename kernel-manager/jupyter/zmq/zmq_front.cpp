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

Result<PrivateDirectory> open_socket_directory(const ZmqFrontConfig& config) {
    return config.socket_directory.empty() ? PrivateDirectory::make_temporary(runtime_directory())
                                           : PrivateDirectory::open(config.socket_directory);
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
    WorkThread work_thread{};  // checks long messages

    void log(const std::string& line) const {
        if (config.log) {
            config.log(line);
        }
    }
    Status serve(Place& place, BoundSockets sockets);
    Status bind(Place& place);
};

Status ZmqFront::State::serve(Place& place, BoundSockets sockets) {
    ZmqSessionConfig session_config;
    session_config.stall_max = config.stall_max;
    session_config.log = config.log;
    session_config.work_thread = &work_thread;
    BOOST_OUTCOME_TRY(
        place.front,
        ZmqSession::create(io, std::move(sockets), place.session, std::move(session_config)));
    return ok();
}

/// Where the connection file says, or over tcp where there is room, which it will say.
Status ZmqFront::State::bind(Place& place) {
    const bool tcp = config.transport == protocol::Transport::kTcp;
    BOOST_OUTCOME_TRY(
        BoundSockets sockets,
        tcp ? bind_loopback_sockets(context, config.high_water_mark)
            : bind_given_sockets(context, place.connection, config.high_water_mark));
    place.connection = sockets.connection;
    return serve(place, std::move(sockets));
}

Result<std::unique_ptr<ZmqFront>> ZmqFront::create(
    boost::asio::io_context& io, ZmqFrontConfig config) {
    BOOST_OUTCOME_TRY(PrivateDirectory directory, PrivateDirectory::open(config.directory));
    // Files of a server that was killed name sockets that no server has.
    directory.remove_files("kernel-ses_", std::string(kFileSuffix));
    BOOST_OUTCOME_TRY(PrivateDirectory sockets, open_socket_directory(config));
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
    std::unique_ptr<ZmqFront> front(new ZmqFront(std::move(state)));
    if (front->state_->config.transport == protocol::Transport::kIpc) {
        front->watch_files();
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

void ZmqFront::watch_files() {
    FileWatch::Events events;
    events.on_opened = [this](const std::string& name) { on_file_opened(name); };
    events.on_lost = [this] {
        for (const auto& [id, place] : state_->places) {
            on_file_opened(std::string(kFilePrefix) + id + std::string(kFileSuffix));
        }
    };
    auto watch = FileWatch::create(state_->io, state_->directory.path(), std::move(events));
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
    const std::string& id = session->id();
    const std::string context = "open the Jupyter sockets of " + id;
    Place place;
    place.session = session;
    if (state_->config.transport == protocol::Transport::kIpc) {
        BOOST_OUTCOME_TRY(
            place.connection,
            with_context(name_ipc_sockets(state_->socket_directory.path() + "/" + id), context));
    }
    if (state_->watch == nullptr) {
        BOOST_OUTCOME_TRY(with_context(state_->bind(place), context));
    }
    place.connection.kernel_name = session->info().language;
    const std::string path =
        state_->directory.path() + "/" + std::string(kFilePrefix) + id + std::string(kFileSuffix);
    BOOST_OUTCOME_TRY(
        with_context(protocol::write_connection_file(path, place.connection), context));
    place.file.add(path);
    session->set_connection_file(path);
    state_->places.insert_or_assign(id, std::move(place));
    return ok();
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

const PeerLog* ZmqFront::find_log(const std::string& session_id) const {
    const auto found = state_->places.find(session_id);
    const bool bound = found != state_->places.end() && found->second.front != nullptr;
    return bound ? &found->second.front->log() : nullptr;
}

const ZmqFrontConfig& ZmqFront::config() const {
    return state_->config;
}

}  // namespace cellkeep::jupyter
