// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq_front.hpp"

#include "kernel-manager/jupyter/private_directory.hpp"
#include "kernel-manager/jupyter/zmq_session.hpp"

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <utility>

namespace cellkeep::jupyter {
namespace {

/// A session id as long as they get, to know at the start whether every endpoint will fit.
constexpr const char* kLongestId = "ses_000000000000000000000000";

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

Status check_prefix_length(const std::string& prefix) {
    protocol::ConnectionInfo longest;
    longest.ip = prefix;
    return check_endpoint_length(longest);
}

}  // namespace

struct ZmqFront::State {
    boost::asio::io_context& io;
    ZmqFrontConfig config;
    // Destroyed in reverse: first the sessions' sockets and files, then the context, which waits
    // for what they still send, and then the directories, empty by now.
    PrivateDirectory directory;
    PrivateDirectory socket_directory;
    ZmqContext context;
    std::map<std::string, std::shared_ptr<ZmqSession>> sessions;
};

Result<std::unique_ptr<ZmqFront>> ZmqFront::create(
    boost::asio::io_context& io, ZmqFrontConfig config) {
    BOOST_OUTCOME_TRY(PrivateDirectory directory, PrivateDirectory::open(config.directory));
    // Of a server that was killed: whoever reads them finds sockets that nobody serves.
    directory.remove_files("kernel-ses_", ".json");
    BOOST_OUTCOME_TRY(PrivateDirectory sockets, open_socket_directory(config));
    config.socket_directory = sockets.path();
    if (config.transport == protocol::Transport::kIpc) {
        BOOST_OUTCOME_TRY(check_prefix_length(sockets.path() + "/" + kLongestId));
    }
    BOOST_OUTCOME_TRY(ZmqContext context, ZmqContext::create());
    std::unique_ptr<State> state(new State{
        io, std::move(config), std::move(directory), std::move(sockets), std::move(context), {}});
    return std::unique_ptr<ZmqFront>(new ZmqFront(std::move(state)));
}

ZmqFront::ZmqFront(std::unique_ptr<State> state) : state_(std::move(state)) {}

ZmqFront::~ZmqFront() {
    for (const auto& [id, front] : state_->sessions) {
        front->close();
    }
}

Status ZmqFront::on_session_created(const std::shared_ptr<session::Session>& session) {
    const std::string& id = session->id();
    const std::string prefix = state_->socket_directory.path() + "/" + id;
    if (state_->config.transport == protocol::Transport::kIpc) {
        BOOST_OUTCOME_TRY(check_prefix_length(prefix));
    }
    const std::string context = "open the Jupyter sockets of " + id;
    BOOST_OUTCOME_TRY(
        BoundSockets sockets,
        with_context(
            bind_fresh_sockets(
                state_->context, state_->config.transport, prefix, state_->config.high_water_mark),
            context));
    sockets.connection.kernel_name = session->info().language;
    ZmqSessionConfig config;
    config.connection_file = state_->directory.path() + "/kernel-" + id + ".json";
    config.stall_max = state_->config.stall_max;
    config.log = state_->config.log;
    BOOST_OUTCOME_TRY(
        std::shared_ptr<ZmqSession> front,
        with_context(
            ZmqSession::create(state_->io, std::move(sockets), session, std::move(config)),
            context));
    state_->sessions[id] = std::move(front);
    return ok();
}

void ZmqFront::on_session_closed(const std::string& session_id) {
    const auto found = state_->sessions.find(session_id);
    if (found != state_->sessions.end()) {
        found->second->close();
        state_->sessions.erase(found);
    }
}

const PeerLog* ZmqFront::find_log(const std::string& session_id) const {
    const auto found = state_->sessions.find(session_id);
    return found == state_->sessions.end() ? nullptr : &found->second->log();
}

const ZmqFrontConfig& ZmqFront::config() const {
    return state_->config;
}

}  // namespace cellkeep::jupyter
