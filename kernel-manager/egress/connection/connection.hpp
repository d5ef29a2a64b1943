// SPDX-License-Identifier: Apache-2.0
//
// One connection from inside a session to its proxy: requests one after another (exchange.hpp), or
// a tunnel (tunnel.hpp). Nothing that the guest sent goes on before it has been read as one
// well-formed request, or one well-formed ClientHello, and its target has been checked. Every wait
// has a deadline. Kept alive by its own coroutine; io_context thread only.
#pragma once

#include "kernel-manager/egress/connection/client_side.hpp"
#include "kernel-manager/egress/connection/connection_state.hpp"
#include "kernel-manager/egress/connection/upstream.hpp"
#include "kernel-manager/egress/message/message_reader.hpp"
#include "kernel-manager/egress/message/proxy_request.hpp"
#include "kernel-manager/egress/passing/passed_proxy.hpp"
#include "kernel-manager/egress/session_proxy.hpp"
#include "kernel-manager/egress/stream.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstddef>
#include <memory>
#include <optional>

namespace cellkeep::egress {

/// kTooMany: its one request is refused for that reason, and it closes.
enum class ProxyAdmission { kServe, kTooMany };

class ProxyConnection : public std::enable_shared_from_this<ProxyConnection> {
 public:
    ProxyConnection(
        std::shared_ptr<SessionProxy> owner,
        boost::asio::ip::tcp::socket socket,
        ProxyAdmission admission);
    ProxyConnection(const ProxyConnection&) = delete;
    ProxyConnection& operator=(const ProxyConnection&) = delete;
    ~ProxyConnection();

    void start();
    ProxyAdmission admission() const { return admission_; }
    /// Where it goes now, if it was allowed to.
    const std::optional<Authority>& target() const { return state_.target; }
    /// Ends it now.
    void stop(Reason why);

    // --- its way to another program in the server's process
    /// In place of start(), of a tunnel that another program has left.
    void go_on(std::unique_ptr<SocketStream> host, PassedTunnel tunnel);
    /// It waits for a request, or only carries bytes.
    bool is_at_rest() const;
    /// What it has read and not yet written.
    std::size_t held() const;
    /// What another program needs to carry the connection on. This object closes neither side.
    /// nullopt: the connection cannot pass, and this ends it. Precondition: is_at_rest().
    std::optional<PassedConnection> pass_on();

 private:
    boost::asio::awaitable<void> run();
    boost::asio::awaitable<void> carry_on(PassedTunnel tunnel);
    boost::asio::awaitable<void> end();
    boost::asio::awaitable<void> refuse_connection();
    boost::asio::awaitable<Next> serve_one();
    /// One request of the minute's, also for what is answered without having been understood. A
    /// refusal if there is none left.
    std::optional<EgressRefusal> charge();
    Allowed<ProxyRequest> admit(const MessageReader& reader);
    /// reader: of the request that is refused; null if its head was not read.
    boost::asio::awaitable<Next> refuse(const MessageReader* reader, EgressRefusal refusal);

    ProxyAdmission admission_;
    ConnectionState state_;
    ClientSide client_;
    Upstream upstream_;
};

}  // namespace cellkeep::egress
