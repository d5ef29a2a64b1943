// SPDX-License-Identifier: Apache-2.0
//
// One request and its answer, over a connection to the host that is made for it alone: what the
// host says after its answer, or instead of it, can never be taken for another request's.
// io_context thread only.
#pragma once

#include "kernel-manager/egress/connection/client_side.hpp"
#include "kernel-manager/egress/connection/connection_state.hpp"
#include "kernel-manager/egress/connection/upstream.hpp"
#include "kernel-manager/egress/message/proxy_request.hpp"
#include "kernel-manager/egress/secrets/secret.hpp"
#include "kernel-manager/egress/secrets/secret_mask.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <optional>

namespace cellkeep::egress {

class Exchange {
 public:
    /// All of them must outlive it. `reader` has read the head of `request`.
    Exchange(
        ConnectionState& state,
        ClientSide& client,
        Upstream& upstream,
        MessageReader& reader,
        const ProxyRequest& request)
        : state_(state), client_(client), upstream_(upstream), reader_(reader), request_(request) {}
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;
    ~Exchange() = default;

    /// Sends the request on and its answer back. For a refusal the client has no answer yet.
    boost::asio::awaitable<Allowed<Next>> run();

 private:
    Step send_request(const SecretUse& use);
    Step pass_body_up(const Framing& framing);
    Step read_answer_head(std::unique_ptr<MessageReader>& answer);
    Framing answer_framing(const MessageReader& answer) const;
    boost::asio::awaitable<Next> pass_answer(MessageReader& answer);
    Step pass_body_down(MessageReader& answer, const Framing& framing);

    ConnectionState& state_;
    ClientSide& client_;
    Upstream& upstream_;
    MessageReader& reader_;
    const ProxyRequest& request_;
    std::optional<SecretMask> mask_;  // for the host of a secret
};

}  // namespace cellkeep::egress
