// SPDX-License-Identifier: Apache-2.0
//
// CONNECT: a tunnel to the target, opaque once its ClientHello has been read; or, for the host of a
// secret, one that ends here, so that requests inside it can be read. io_context thread only.
#pragma once

#include "kernel-manager/egress/connection/client_side.hpp"
#include "kernel-manager/egress/connection/connection_state.hpp"
#include "kernel-manager/egress/connection/upstream.hpp"
#include "kernel-manager/egress/message/proxy_request.hpp"

#include <boost/asio/awaitable.hpp>

namespace cellkeep::egress {

class Tunnel {
 public:
    /// All of them must outlive it.
    Tunnel(ConnectionState& state, ClientSide& client, Upstream& upstream)
        : state_(state), client_(client), upstream_(upstream) {}
    Tunnel(const Tunnel&) = delete;
    Tunnel& operator=(const Tunnel&) = delete;
    ~Tunnel() = default;

    /// Returns when the tunnel is over, or kKeepAlive when it ends here and requests come inside
    /// it. For a refusal the client has no answer yet.
    boost::asio::awaitable<Allowed<Next>> run(const ProxyRequest& request);

 private:
    Step read_hello();
    boost::asio::awaitable<Next> terminate();
    boost::asio::awaitable<void> relay();
    boost::asio::awaitable<void> refuse(EgressRefusal refusal);

    ConnectionState& state_;
    ClientSide& client_;
    Upstream& upstream_;
};

}  // namespace cellkeep::egress
