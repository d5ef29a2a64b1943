// SPDX-License-Identifier: Apache-2.0
//
// One session as a Jupyter kernel on ZeroMQ: ROUTER shell, control and stdin, XPUB iopub and an
// echoing ROUTER as heartbeat (Jupyter messaging specification 5.5). A peer that cannot sign gets
// no answer. A subscriber of iopub keeps the session from being culled, as a WebSocket does. All
// calls on the io_context thread.
#pragma once

#include "kernel-manager/jupyter/peer_log.hpp"
#include "kernel-manager/jupyter/zmq/bound_sockets.hpp"
#include "kernel-manager/jupyter/zmq/client_return.hpp"
#include "kernel-manager/jupyter/zmq/iopub_publisher.hpp"
#include "kernel-manager/jupyter/zmq/passed_zmq.hpp"
#include "kernel-manager/jupyter/zmq/waiting_requests.hpp"
#include "kernel-manager/jupyter/zmq/watched_socket.hpp"
#include "kernel-manager/kernel/reply_sink.hpp"
#include "kernel-manager/output/output_observer.hpp"
#include "kernel-manager/session/session.hpp"
#include "protocol/connection_file.hpp"
#include "protocol/message.hpp"
#include "protocol/signer.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/work_thread.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::jupyter {

/// A client that was just served may ask for the next thing at once, and one that just asked may
/// ask for more: its sockets are not closed for another program so soon.
inline constexpr std::chrono::milliseconds kZmqQuiet{20};

struct ZmqSessionConfig {
    std::chrono::milliseconds stall_max{0};
    PeerLog::Write log;  // may be empty
    /// Checks long messages, and lives longer. Null: they are checked at once.
    WorkThread* work_thread = nullptr;
    /// Called, from the io_context, after a client's shutdown_request was answered, whether it
    /// asked for a restart or not. May be empty.
    std::function<void()> on_shutdown_answered;
};

class ZmqSession : public session::OutputObserver, public std::enable_shared_from_this<ZmqSession> {
 public:
    /// Serves the session on the sockets and subscribes to its output. A failure leaves nothing
    /// behind.
    static Result<std::shared_ptr<ZmqSession>> create(
        boost::asio::io_context& io,
        BoundSockets sockets,
        const std::shared_ptr<session::Session>& session,
        ZmqSessionConfig config);

    class Key {
        friend class ZmqSession;
        Key() = default;
    };
    ZmqSession(
        Key key,
        std::shared_ptr<session::Session> session,
        protocol::Signer signer,
        boost::asio::io_context& io,
        ZmqSessionConfig config);
    ZmqSession(const ZmqSession&) = delete;
    ZmqSession& operator=(const ZmqSession&) = delete;
    ~ZmqSession() override;

    /// Hands the session a request that came before this served it.
    void submit(std::vector<std::string> identities, protocol::Message request);

    void on_output(const session::OutputEntry& entry) override;
    bool congested() const override;

    /// Takes the sockets away; what was sent is still delivered for the linger time.
    void close();

    const PeerLog& log() const { return log_; }

    // --- when another program is to take the server's place
    /// Requests on shell wait here until resume(), but those of clients that would not have the
    /// same identity again.
    void hold();
    void resume();
    std::size_t held() const { return held_.count(); }
    bool is_subscribed() const { return connected_ != nullptr; }
    /// What is done for clients at present, for people; nullopt: nothing, for a moment.
    std::optional<std::string> find_work() const;
    /// Receives all that has come, and holds it. kLimitExceeded: that is more than may pass.
    Status collect();
    /// As close(); nothing that came before is lost. All but the connection, which the front has.
    PassedZmqSession pass_on();
    /// About how long that is.
    std::size_t passed_bytes() const { return held_.bytes() + signer_.passed_bytes(); }
    /// Before anything has come. kProtocol for another form.
    Status go_on(PassedZmqSession passed);

 private:
    friend class ZmqClient;
    using Identities = std::vector<std::string>;
    /// On its way to a client. A large one is signed in slices.
    struct Reply {
        Identities identities;
        protocol::Message message;
        protocol::Signing signing;
    };

    Status watch(BoundSockets sockets);
    Result<std::shared_ptr<WatchedSocket>> watch_router(
        ZmqSocket socket, protocol::Channel channel);
    Status watch_iopub(ZmqSocket socket);
    Status watch_heartbeat(ZmqSocket socket);
    void receive(protocol::Channel channel, ZmqMultipart multipart);
    /// The same of a long message: the socket that it came by is paused meanwhile.
    static boost::asio::awaitable<void> receive_long(
        std::weak_ptr<ZmqSession> session,
        std::weak_ptr<WatchedSocket> socket,
        protocol::Channel channel,
        std::shared_ptr<ZmqMultipart> multipart);
    void take(protocol::Channel channel, Result<protocol::SignedMessage> opened);
    const std::shared_ptr<WatchedSocket>& socket_of(protocol::Channel channel) const;
    void begin_request(Identities identities, protocol::Message request);
    bool must_hold(const Identities& identities, protocol::Channel channel) const;
    void hold_request(WaitingRequest request);
    void release();
    void note_traffic() { traffic_at_ = std::chrono::steady_clock::now(); }
    void beat(const ZmqMultipart& multipart);
    void deliver(const Identities& identities, const protocol::Message& message);
    void send_replies();
    void send(LateReply reply);
    void report(std::string_view socket, const Error& error);
    std::shared_ptr<session::ReplySink> client_for(Identities identities);

    std::shared_ptr<session::Session> session_;
    protocol::Signer signer_;
    boost::asio::io_context& io_;
    ZmqSessionConfig config_;
    PeerLog log_;
    OwnedFiles files_;  // the ipc sockets
    std::shared_ptr<WatchedSocket> shell_;
    std::shared_ptr<WatchedSocket> control_;
    std::shared_ptr<WatchedSocket> stdin_;
    std::shared_ptr<WatchedSocket> heartbeat_;
    std::shared_ptr<IopubPublisher> iopub_;
    /// One sink per client, so that an input_reply comes from the same origin as the request.
    std::map<Identities, std::weak_ptr<session::ReplySink>> clients_;
    std::size_t clients_purge_at_ = 64;
    /// While anybody subscribes to iopub: counts as one connected client, however many those are.
    std::shared_ptr<void> connected_;
    std::deque<Reply> replies_;  // one for each request that was accepted, and those are bounded
    bool replying_ = false;      // a turn is posted
    std::size_t checking_ = 0;   // long messages, on the other thread
    WaitingRequests held_;
    bool holding_ = false;
    bool collecting_ = false;
    bool full_ = false;  // more is held than may pass: shell is paused
    std::chrono::steady_clock::time_point traffic_at_;
    std::shared_ptr<ClientReturn> return_;  // null: they were never somewhere else
    bool closed_ = false;
};

}  // namespace cellkeep::jupyter
