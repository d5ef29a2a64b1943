// SPDX-License-Identifier: Apache-2.0
//
// The ZeroMQ front: gives every session a standard Jupyter connection file, so that any Jupyter
// client attaches (`jupyter console --existing FILE`). Sockets of ipc are bound when a client opens
// that file: five of them take ten descriptors, and most sessions never have such a client. One
// that connects a moment too early is connected by its ZeroMQ in 100 ms (ZMQ_RECONNECT_IVL,
// zmq_setsockopt(3)). Owns the sockets, the files and the directories it made, and takes all of
// them away with the session. All calls on the io_context thread.
#pragma once

#include "kernel-manager/jupyter/zmq/bound_sockets.hpp"
#include "kernel-manager/jupyter/zmq/passed_zmq.hpp"
#include "kernel-manager/service/service.hpp"
#include "protocol/connection_file.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::jupyter {

class PeerLog;

/// What another program in the server's process gets of this front, or has left for it.
struct ZmqLeft {
    PassedZmq values;
    UniqueFd watch;  // of the connection files; none: they are not watched
};

struct ZmqFrontConfig {
    /// With ipc only this user can reach the sockets; with tcp every local user can connect, and
    /// may listen to iopub without the key.
    protocol::Transport transport = protocol::Transport::kIpc;
    /// Holds the connection files, kernel-<session id>.json. Made if missing (mode 0700); if it
    /// exists, it must be ours and closed to others, and used by no other front:
    /// connection files found there are those of a dead server and are removed.
    std::string directory;
    /// Holds the ipc sockets; as `directory`, and short. Empty: a fresh one under $XDG_RUNTIME_DIR
    /// or /tmp, removed at the end.
    std::string socket_directory;
    /// Output messages that ZeroMQ holds for one slow subscriber, and how long a session waits for
    /// it.
    int high_water_mark = limits::kZmqHighWaterMark;
    std::chrono::milliseconds stall_max = limits::kZmqStallMax;
    /// Gets one line per noteworthy event, rate-limited. May be empty.
    std::function<void(const std::string&)> log;
};

class ZmqFront : public session::SessionListener {
 public:
    /// kPermissionDenied if a directory belongs to or is open to others, kInvalidArgument if the
    /// path of the sockets would be too long.
    /// left: of the program before, whose sessions come with on_session_created().
    static Result<std::unique_ptr<ZmqFront>> create(
        boost::asio::io_context& io, ZmqFrontConfig config, ZmqLeft left = {});
    ZmqFront(const ZmqFront&) = delete;
    ZmqFront& operator=(const ZmqFront&) = delete;
    ~ZmqFront() override;

    /// Over tcp, and where no directory can be watched, an error if the sockets cannot be had. Over
    /// ipc that is logged when the file is opened, and tried again when it is opened again.
    Status on_session_created(const std::shared_ptr<session::Session>& session) override;
    void on_session_closed(const std::string& session_id) override;

    /// The server ends: no connection file is watched any more. Sockets that are open stay. A watch
    /// that went on would keep the io_context from running out of work.
    void stop();

    // --- when another program is to take the server's place
    std::optional<std::string> find_work(const session::Session& session) const override;
    /// "ID (reason)" of each session to which a client is connected, for a program that knows no
    /// such clients.
    std::vector<std::string> find_connected() const;
    /// New requests wait until resume(), as far as another program can have them.
    void hold();
    void resume();
    /// As ZmqSession::collect(), of all.
    Status collect();
    /// The sockets are closed; files and directories stay for a while. Precondition: no work.
    ZmqLeft pass_on();
    /// About how many bytes of values that is.
    std::size_t passed_bytes() const;
    /// The other program gets what pass_on() gave: files and directories stay there.
    void leave_files();
    /// Sessions of the program before that have not come: their files go.
    void end_taking_over();

    /// How many requests of one session wait.
    std::size_t count_held(const std::string& session_id) const;
    /// Counters of one session, or null, also while it has no sockets.
    const PeerLog* find_log(const std::string& session_id) const;
    const ZmqFrontConfig& config() const;

 private:
    struct State;
    explicit ZmqFront(std::unique_ptr<State> state);
    void watch_files(UniqueFd passed);
    Status go_on(const std::shared_ptr<session::Session>& session, PassedZmqSession passed);
    Status begin(const std::shared_ptr<session::Session>& session);
    void on_file_opened(const std::string& name);

    std::unique_ptr<State> state_;
};

}  // namespace cellkeep::jupyter
