// SPDX-License-Identifier: Apache-2.0
//
// One request and its answer, over a connection to the server that is made for it alone: what the
// server says after its answer, or instead of it, can never be taken for another request's.
#include "kernel-manager/egress/connection.hpp"
#include "kernel-manager/egress/network_policy.hpp"
#include "kernel-manager/egress/tls_stream.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::egress {

namespace asio = boost::asio;

namespace {

/// Interim answers (1xx) before the one that counts.
constexpr int kInterimAnswersMax = 8;
constexpr int kSwitchingProtocols = 101;
constexpr int kNoContent = 204;
constexpr int kNotModified = 304;
constexpr const char* kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr const char* kLastChunk = "0\r\n\r\n";

bool expects_continue(const MessageHead& head) {
    const auto expected = values_of(head, "Expect");
    return head.version_1_1 && expected.size() == 1 && same_name(expected[0], "100-continue");
}

bool is_packed(const MessageHead& head) {
    const auto codings = values_of(head, "Content-Encoding");
    return std::any_of(codings.begin(), codings.end(), [](std::string_view coding) {
        return !coding.empty() && !same_name(coding, "identity");
    });
}

Framing request_framing(const MessageReader& reader) {
    if (const auto length = reader.content_length()) {
        return {Framing::Kind::kLength, *length};
    }
    return {reader.has_body() ? Framing::Kind::kChunked : Framing::Kind::kNone, 0};
}

}  // namespace

asio::awaitable<ProxyConnection::Next> ProxyConnection::forward(
    MessageReader& reader, const ProxyRequest& request) {
    const bool tls = tunnel_.has_value();
    const auto use = choose_secret(owner_->secrets(), request, tls);
    if (use.has_error()) {
        co_return co_await refuse(&reader, use.error());
    }
    const auto opened = co_await open_upstream(request.target, tls);
    if (opened.has_error()) {
        co_return co_await refuse(&reader, opened.error());
    }
    if (use.value().secret != nullptr) {
        record_.secret = use.value().secret->binding.name;
    }
    if (use.value().bound) {
        mask_.emplace(owner_->secrets(), request.target);
    }
    const auto sent = co_await send_request(reader, request, use.value());
    if (sent.has_error()) {
        co_return co_await refuse(&reader, sent.error());
    }
    std::unique_ptr<MessageReader> answer;
    const auto got = co_await read_answer_head(answer, request.method == "HEAD");
    if (got.has_error()) {
        co_return co_await refuse(&reader, got.error());
    }
    if (mask_ && answer->has_body() && is_packed(answer->head())) {
        Refusal packed;
        packed.reason = Reason::kUpstreamProtocol;
        packed.detail =
            "The host packs its answer although it was asked not to, so that the secret "
            "could come back unseen.";
        co_return co_await refuse(&reader, std::move(packed));
    }
    co_return co_await pass_answer(reader, *answer, request);
}

ProxyConnection::Step ProxyConnection::open_upstream(const Authority& to, bool tls) {
    watchdog_.disarm();  // the dialer has deadlines of its own
    asio::any_io_executor executor = owner_->io().get_executor();
    Authority copy = to;
    const ProxyLimits most = limits();
    dialing_ = std::make_shared<Dialing>(owner_->lookups());
    std::shared_ptr<Dialing> dialing = dialing_;
    auto dialed = co_await owner_->parts().dialer->dial(
        std::move(executor), std::move(copy), most, std::move(dialing));
    dialing_.reset();
    if (stopped_) {
        co_return Refusal{*stopped_, "The connection was ended from outside."};
    }
    if (dialed.has_error()) {
        co_return dialed.error();
    }
    record_.address = dialed.value()->address.to_string();
    if (!tls) {
        upstream_ = std::make_unique<SocketStream>(std::move(dialed.value()->socket));
        co_return true;
    }
    auto stream = std::make_unique<TlsStream>(
        std::move(dialed.value()->socket), owner_->parts().client_context);
    TlsStream& secured = *stream;
    upstream_ = std::move(stream);
    watchdog_.arm(limits().head_timeout);
    Host host = to.host;
    const boost::system::error_code failed = co_await secured.connect(std::move(host));
    if (failed) {
        co_return explain(
            Reason::kUpstreamTls,
            Reason::kUpstreamTimeout,
            "No TLS connection with a certificate that is valid for " + to.host.text + ".");
    }
    co_return true;
}

/// Counts and writes.
ProxyConnection::Step ProxyConnection::send_up(std::string text) {
    if (!owner_->budget().take_up(text.size())) {
        co_return Refusal{
            Reason::kBytesUpLimit,
            "The session has sent its " + std::to_string(limits().bytes_up_max) + " bytes."};
    }
    record_.bytes_up += text.size();
    watchdog_.arm(limits().idle_timeout);
    const boost::system::error_code failed = co_await upstream_->write(text);
    if (failed) {
        co_return explain(
            Reason::kUpstreamClosed, Reason::kUpstreamTimeout, "The host takes no more.");
    }
    co_return true;
}

ProxyConnection::Step ProxyConnection::send_request(
    MessageReader& reader, const ProxyRequest& request, const SecretUse& use) {
    const Framing framing = request_framing(reader);
    std::vector<std::string> dropped;
    std::vector<Field> added;
    if (use.bound) {
        dropped = dropped_fields(owner_->secrets(), reader.head());
        added.push_back({"Accept-Encoding", "identity"});
    }
    if (use.secret != nullptr) {
        added.push_back({use.secret->binding.header, use.secret->value});
    }
    std::string head = make_upstream_head(
        reader.head(), request, tunnel_ ? kHttpsPort : kHttpPort, framing, dropped, added);
    auto sent = co_await send_up(std::move(head));
    if (sent.has_error()) {
        co_return sent;
    }
    if (!reader.done() && expects_continue(reader.head())) {
        const boost::system::error_code failed = co_await client_->write(kContinue);
        if (failed) {
            co_return explain(
                Reason::kClientClosed, Reason::kClientClosed, "The client went away.");
        }
    }
    if (!reader.has_body()) {
        co_return true;
    }
    auto passed = co_await pass_body_up(reader, framing);
    // A server may answer before it has taken everything: then its answer counts.
    if (passed.has_error() && passed.error().reason == Reason::kUpstreamClosed) {
        co_return true;
    }
    co_return passed;
}

ProxyConnection::Step ProxyConnection::pass_body_up(MessageReader& reader, const Framing& framing) {
    const bool chunked = framing.kind == Framing::Kind::kChunked;
    while (true) {
        std::string piece = reader.take_body();
        if (!piece.empty()) {
            if (chunked) {
                piece = make_chunk(piece);
            }
            auto sent = co_await send_up(std::move(piece));
            if (sent.has_error()) {
                co_return sent;
            }
        }
        if (reader.done()) {
            break;
        }
        if (input_.empty()) {
            watchdog_.arm(limits().idle_timeout);
            const Stream::Got got = co_await read_client();
            if (got.error) {
                co_return explain(
                    Reason::kClientClosed, Reason::kHeadTimeout, "The body did not arrive.");
            }
        }
        const auto used = reader.feed(input_);
        if (used.has_error()) {
            co_return Refusal{Reason::kMalformed, used.error().message() + "."};
        }
        input_.erase(0, used.value());
    }
    if (chunked) {
        std::string last = kLastChunk;
        co_return co_await send_up(std::move(last));
    }
    co_return true;
}

/// Reads once, counts, feeds; at the end of the connection the answer must be whole. The caller has
/// set the deadline.
ProxyConnection::Step ProxyConnection::read_upstream(MessageReader& answer) {
    if (from_upstream_.empty()) {
        const Stream::Got got = co_await upstream_->read_some(asio::buffer(upstream_buffer_));
        const bool at_end = got.error == asio::error::eof;
        if (at_end && answer.head_done() && answer.end().has_value()) {
            co_return true;
        }
        if (got.error) {
            co_return explain(
                Reason::kUpstreamClosed,
                Reason::kUpstreamTimeout,
                "The host's answer did not come to its end.");
        }
        if (!owner_->budget().take_down(got.bytes)) {
            co_return Refusal{
                Reason::kBytesDownLimit,
                "The session has received its " + std::to_string(limits().bytes_down_max) +
                    " bytes."};
        }
        record_.bytes_down += got.bytes;
        from_upstream_.assign(upstream_buffer_.data(), got.bytes);
    }
    const auto used = answer.feed(from_upstream_);
    if (used.has_error()) {
        co_return Refusal{
            Reason::kUpstreamProtocol, "The host's answer: " + used.error().message() + "."};
    }
    from_upstream_.erase(0, used.value());
    co_return true;
}

ProxyConnection::Step ProxyConnection::read_answer_head(
    std::unique_ptr<MessageReader>& answer, bool to_head) {
    from_upstream_.clear();
    const auto kind =
        to_head ? MessageReader::Kind::kResponseToHead : MessageReader::Kind::kResponse;
    for (int interim = 0; interim <= kInterimAnswersMax; ++interim) {
        answer =
            std::make_unique<MessageReader>(kind, limits().head_bytes_max, limits().headers_max);
        watchdog_.arm(limits().idle_timeout);
        bool begun = false;
        while (!answer->head_done()) {
            // A head that comes byte by byte does not get the patience of a silence for each.
            if (answer->fed() && !std::exchange(begun, true)) {
                watchdog_.arm(limits().head_timeout);
            }
            auto read = co_await read_upstream(*answer);
            if (read.has_error()) {
                co_return read;
            }
        }
        const int status = answer->head().status;
        if (status == kSwitchingProtocols) {
            co_return Refusal{
                Reason::kUpstreamProtocol, "The host changes to a protocol nobody asked for."};
        }
        if (status >= 200) {
            co_return true;
        }
    }
    co_return Refusal{Reason::kUpstreamProtocol, "The host sends too many interim answers."};
}

Framing ProxyConnection::answer_framing(const MessageReader& answer, bool to_head) const {
    const int status = answer.head().status;
    if (const auto length = answer.content_length(); length && status != kNoContent) {
        return {Framing::Kind::kLength, *length};
    }
    if (to_head || status == kNoContent || status == kNotModified) {
        return {};
    }
    if (!answer.has_body()) {
        return {Framing::Kind::kLength, 0};
    }
    return {client_is_1_1_ ? Framing::Kind::kChunked : Framing::Kind::kUntilClose, 0};
}

asio::awaitable<ProxyConnection::Next> ProxyConnection::pass_answer(
    MessageReader& reader, MessageReader& answer, const ProxyRequest& request) {
    const Framing framing = answer_framing(answer, request.method == "HEAD");
    const bool keep =
        reader.done() && reader.keep_alive() && framing.kind != Framing::Kind::kUntilClose;
    const Afterwards after = keep ? Afterwards::kKeepAlive : Afterwards::kClose;
    MessageHead shown = answer.head();
    if (mask_) {
        shown = mask_->mask(std::move(shown));
    }
    const std::string head = make_client_head(shown, framing, after);
    record_.status = answer.head().status;
    answered_ = true;
    watchdog_.arm(limits().idle_timeout);
    const boost::system::error_code failed = co_await client_->write(head);
    if (failed) {
        const Refusal gone =
            explain(Reason::kClientClosed, Reason::kIdleTimeout, "The client takes no more.");
        finish_record(gone.reason);
        co_return Next::kClose;
    }
    if (answer.has_body()) {
        const auto passed = co_await pass_body_down(answer, framing);
        if (passed.has_error()) {
            finish_record(passed.error().reason);
            co_return Next::kClose;  // cut short: the client sees that it is not whole
        }
    }
    if (upstream_) {
        upstream_->close();
    }
    finish_record(Reason::kAllowed);
    if (!keep && !reader.done()) {
        co_await linger();
    }
    co_return keep ? Next::kKeepAlive : Next::kClose;
}

ProxyConnection::Step ProxyConnection::pass_body_down(
    MessageReader& answer, const Framing& framing) {
    const bool chunked = framing.kind == Framing::Kind::kChunked;
    while (true) {
        std::string piece = answer.take_body();
        const bool last = answer.done();
        if (mask_) {
            piece = mask_->feed(piece);
            if (last) {
                piece += mask_->finish();
            }
        }
        if (chunked && !piece.empty()) {
            piece = make_chunk(piece);
        }
        if (chunked && last) {
            piece += kLastChunk;
        }
        if (!piece.empty()) {
            watchdog_.arm(limits().idle_timeout);
            const boost::system::error_code failed = co_await client_->write(piece);
            if (failed) {
                co_return explain(
                    Reason::kClientClosed, Reason::kIdleTimeout, "The client takes no more.");
            }
        }
        if (last) {
            co_return true;
        }
        watchdog_.arm(limits().idle_timeout);
        auto read = co_await read_upstream(answer);
        if (read.has_error()) {
            co_return read;
        }
    }
}

}  // namespace cellkeep::egress
