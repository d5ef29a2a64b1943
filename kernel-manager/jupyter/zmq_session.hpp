// SPDX-License-Identifier: Apache-2.0
//
// One session as a Jupyter kernel on ZeroMQ: ROUTER shell, control and stdin, XPUB iopub, an
// echoing ROUTER as heartbeat, and the connection file that leads to them (Jupyter messaging
// specification 5.5). Whoever cannot sign is never answered. All calls on the io_context thread.
#pragma once

#include "kernel-manager/jupyter/iopub_publisher.hpp"
#include "kernel-manager/jupyter/peer_log.hpp"
#include "kernel-manager/jupyter/watched_socket.hpp"
#include "kernel-manager/session/session.hpp"
#include "protocol/connection_file.hpp"
#include "protocol/message.hpp"
#include "protocol/signer.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::jupyter {

struct ZmqSessionConfig {
    protocol::Transport transport = protocol::Transport::kIpc;
    std::string connection_file;  // where to write it
    std::string ipc_prefix;       // ipc: the sockets are "<prefix>-1" to "<prefix>-5"
    int high_water_mark = 0;      // output messages per subscriber
    std::chrono::milliseconds stall_max{0};
    PeerLog::Write log;  // may be empty
};

class ZmqSession : public session::OutputObserver, public std::enable_shared_from_this<ZmqSession> {
 public:
    /// Binds the sockets, writes the connection file and subscribes to the session's output. A
    /// failure leaves nothing behind.
    static Result<std::shared_ptr<ZmqSession>> create(
        boost::asio::io_context& io,
        const ZmqContext& context,
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
        ZmqSessionConfig config);
    ZmqSession(const ZmqSession&) = delete;
    ZmqSession& operator=(const ZmqSession&) = delete;
    ~ZmqSession() override;

    void on_output(const session::OutputEntry& entry) override;
    bool congested() const override;

    /// Takes the sockets and the files away; what was sent is still delivered for the linger time.
    void close();

    const PeerLog& log() const { return log_; }

 private:
    friend class ZmqClient;
    using Identities = std::vector<std::string>;

    Status open_sockets(boost::asio::io_context& io, const ZmqContext& context);
    Result<ZmqSocket> bind(
        const ZmqContext& context, const ZmqSocketOptions& options, std::uint16_t& port);
    Result<std::shared_ptr<WatchedSocket>> open_router(
        boost::asio::io_context& io,
        const ZmqContext& context,
        protocol::Channel channel,
        std::uint16_t& port);
    Status open_iopub(boost::asio::io_context& io, const ZmqContext& context);
    Status open_heartbeat(boost::asio::io_context& io, const ZmqContext& context);
    void receive(protocol::Channel channel, const ZmqMultipart& multipart);
    void beat(const ZmqMultipart& multipart);
    void deliver(const Identities& identities, const protocol::Message& message);
    void report(std::string_view socket, const Error& error);
    std::shared_ptr<session::ReplySink> client_for(Identities identities);

    std::shared_ptr<session::Session> session_;
    protocol::Signer signer_;
    ZmqSessionConfig config_;
    PeerLog log_;
    protocol::ConnectionInfo connection_;
    std::shared_ptr<WatchedSocket> shell_;
    std::shared_ptr<WatchedSocket> control_;
    std::shared_ptr<WatchedSocket> stdin_;
    std::shared_ptr<WatchedSocket> heartbeat_;
    std::shared_ptr<IopubPublisher> iopub_;
    /// One sink per client, so that an input_reply comes from the same origin as the request.
    std::map<Identities, std::weak_ptr<session::ReplySink>> clients_;
    std::size_t clients_purge_at_ = 64;
    bool closed_ = false;
};

}  // namespace cellkeep::jupyter
