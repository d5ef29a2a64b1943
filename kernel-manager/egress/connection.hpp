// SPDX-License-Identifier: Apache-2.0
//
// One connection from inside a session to its proxy: requests one after another, or a tunnel.
// Nothing that the guest sent goes on before it has been read as one well-formed request, or one
// well-formed ClientHello, and its target has been checked. Every wait has a deadline. Kept alive
// by its own coroutine; io_context thread only. Sources: connection.cpp (the loop and refusals),
// connection_exchange.cpp (a request and its answer), connection_tunnel.cpp (CONNECT).
#pragma once

#include "kernel-manager/egress/message_reader.hpp"
#include "kernel-manager/egress/proxy_request.hpp"
#include "kernel-manager/egress/secret.hpp"
#include "kernel-manager/egress/secret_mask.hpp"
#include "kernel-manager/egress/session_proxy.hpp"
#include "kernel-manager/egress/stream.hpp"
#include "kernel-manager/egress/watchdog.hpp"

#include <boost/asio/awaitable.hpp>

#include <array>
#include <memory>
#include <optional>
#include <string>

namespace cellkeep::egress {

/// kTooMany: is told so and nothing else.
enum class Admittance { kServe, kTooMany };

class ProxyConnection : public std::enable_shared_from_this<ProxyConnection> {
 public:
    ProxyConnection(
        std::shared_ptr<SessionProxy> owner,
        boost::asio::ip::tcp::socket socket,
        Admittance admittance);
    ProxyConnection(const ProxyConnection&) = delete;
    ProxyConnection& operator=(const ProxyConnection&) = delete;
    ~ProxyConnection();

    void start();
    Admittance admittance() const { return admittance_; }
    /// Where it goes now, if it was allowed to.
    const std::optional<Authority>& target() const { return target_; }
    /// Ends it now.
    void stop(Reason why);

 private:
    enum class Next { kKeepAlive, kClose };
    using Step = boost::asio::awaitable<Allowed<bool>>;

    // connection.cpp
    boost::asio::awaitable<void> run();
    boost::asio::awaitable<Next> serve_one();
    std::optional<Refusal> charge();
    Step read_head(MessageReader& reader);
    Allowed<ProxyRequest> admit(const MessageReader& reader);
    boost::asio::awaitable<Next> refuse(const MessageReader* reader, Refusal refusal);
    boost::asio::awaitable<Stream::Got> read_client();
    boost::asio::awaitable<void> linger();
    /// Writes the record of what began last, once.
    void finish_record(Reason reason);
    /// What an error of a stream means now: that we ended it, or that it ended.
    Refusal explain(Reason when_closed, Reason when_late, std::string detail) const;
    const ProxyLimits& limits() const { return owner_->parts().limits; }

    // connection_exchange.cpp
    boost::asio::awaitable<Next> forward(MessageReader& reader, const ProxyRequest& request);
    Step open_upstream(const Authority& to, bool tls);
    Step send_request(MessageReader& reader, const ProxyRequest& request, const SecretUse& use);
    Step send_up(std::string text);
    Step pass_body_up(MessageReader& reader, const Framing& framing);
    Step read_answer_head(std::unique_ptr<MessageReader>& answer, bool to_head);
    Step read_upstream(MessageReader& answer);
    Framing answer_framing(const MessageReader& answer, bool to_head) const;
    boost::asio::awaitable<Next> pass_answer(
        MessageReader& reader, MessageReader& answer, const ProxyRequest& request);
    Step pass_body_down(MessageReader& answer, const Framing& framing);

    // connection_tunnel.cpp
    boost::asio::awaitable<Next> tunnel(const ProxyRequest& request);
    Step read_hello();
    boost::asio::awaitable<Next> terminate();
    boost::asio::awaitable<void> relay();
    boost::asio::awaitable<void> pump(Stream& from, Stream& to, bool up);
    boost::asio::awaitable<void> end_tunnel(Refusal refusal);

    static constexpr std::size_t kReadBytes = 32ULL << 10U;

    std::shared_ptr<SessionProxy> owner_;
    Admittance admittance_;
    std::unique_ptr<Stream> client_;
    std::unique_ptr<Stream> upstream_;
    Watchdog watchdog_;
    std::shared_ptr<Dialing> dialing_;  // null: nothing is being dialled
    std::optional<Authority> target_;
    std::optional<Authority> tunnel_;  // that ends here: requests inside it are in origin form
    std::optional<Reason> stopped_;
    std::optional<SecretMask> mask_;
    bool client_is_1_1_ = true;
    bool answered_ = false;  // something of an answer has gone to the client
    std::string input_;      // from the client, not yet taken; at most one read and a ClientHello
    std::string from_upstream_;
    std::array<char, kReadBytes> client_buffer_{};
    std::array<char, kReadBytes> upstream_buffer_{};
    AccessRecord record_;
    bool recording_ = false;
    std::chrono::steady_clock::time_point began_at_;
};

}  // namespace cellkeep::egress
