// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/connection/exchange.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

asio::awaitable<Allowed<Next>> Exchange::run() {
    const bool tls = state_.tunnel.has_value();
    const auto use = choose_secret(state_.owner->secrets(), request_, tls);
    if (use.has_error()) {
        co_return use.error();
    }
    const auto opened = co_await upstream_.open(request_.target, tls);
    if (opened.has_error()) {
        co_return opened.error();
    }
    if (use.value().secret != nullptr) {
        state_.record.fields().secret = use.value().secret->binding.name;
    }
    if (use.value().bound) {
        mask_.emplace(state_.owner->secrets(), request_.target);
    }
    const auto sent = co_await send_request(use.value());
    if (sent.has_error()) {
        co_return sent.error();
    }
    std::unique_ptr<MessageReader> answer;
    const auto got = co_await read_answer_head(answer);
    if (got.has_error()) {
        co_return got.error();
    }
    if (mask_ && answer->has_body() && is_packed(answer->head())) {
        EgressRefusal packed;
        packed.reason = Reason::kUpstreamProtocol;
        packed.detail =
            "The host packs its answer although it was asked not to, so that the secret "
            "could come back unseen.";
        co_return packed;
    }
    const Next next = co_await pass_answer(*answer);
    co_return next;
}

Step Exchange::send_request(const SecretUse& use) {
    const Framing framing = request_framing(reader_);
    std::vector<std::string> dropped;
    std::vector<Field> added;
    if (use.bound) {
        dropped = dropped_fields(state_.owner->secrets(), reader_.head());
        added.push_back({"Accept-Encoding", "identity"});
    }
    if (use.secret != nullptr) {
        added.push_back({use.secret->binding.header, use.secret->value});
    }
    std::string head = make_upstream_head(
        reader_.head(), request_, state_.tunnel ? kHttpsPort : kHttpPort, framing, dropped, added);
    auto sent = co_await upstream_.send(std::move(head));
    if (sent.has_error()) {
        co_return sent;
    }
    if (!reader_.done() && expects_continue(reader_.head())) {
        const boost::system::error_code failed = co_await client_.stream().write(kContinue);
        if (failed) {
            co_return state_.explain(
                Reason::kClientClosed, Reason::kClientClosed, "The client went away.");
        }
    }
    if (!reader_.has_body()) {
        co_return true;
    }
    auto passed = co_await pass_body_up(framing);
    // A server may answer before it has taken everything: then its answer counts.
    if (passed.has_error() && passed.error().reason == Reason::kUpstreamClosed) {
        co_return true;
    }
    co_return passed;
}

Step Exchange::pass_body_up(const Framing& framing) {
    const bool chunked = framing.kind == Framing::Kind::kChunked;
    while (true) {
        std::string piece = reader_.take_body();
        if (!piece.empty()) {
            if (chunked) {
                piece = make_chunk(piece);
            }
            auto sent = co_await upstream_.send(std::move(piece));
            if (sent.has_error()) {
                co_return sent;
            }
        }
        if (reader_.done()) {
            break;
        }
        if (client_.input().empty()) {
            state_.watchdog.arm(state_.limits().idle_timeout);
            const Stream::Got got = co_await client_.read();
            if (got.error) {
                co_return state_.explain(
                    Reason::kClientClosed, Reason::kHeadTimeout, "The body did not arrive.");
            }
        }
        const auto used = reader_.feed(client_.input());
        if (used.has_error()) {
            co_return EgressRefusal{Reason::kMalformed, used.error().message() + "."};
        }
        client_.input().erase(0, used.value());
    }
    if (chunked) {
        std::string last = kLastChunk;
        co_return co_await upstream_.send(std::move(last));
    }
    co_return true;
}

Step Exchange::read_answer_head(std::unique_ptr<MessageReader>& answer) {
    const ProxyLimits& limits = state_.limits();
    const auto kind = request_.method == "HEAD" ? MessageReader::Kind::kResponseToHead
                                                : MessageReader::Kind::kResponse;
    for (int interim = 0; interim <= kInterimAnswersMax; ++interim) {
        answer = std::make_unique<MessageReader>(kind, limits.head_bytes_max, limits.headers_max);
        state_.watchdog.arm(limits.idle_timeout);
        bool begun = false;
        while (!answer->head_done()) {
            // A head that comes byte by byte does not get the patience of a silence for each.
            if (answer->fed() && !std::exchange(begun, true)) {
                state_.watchdog.arm(limits.head_timeout);
            }
            auto read = co_await upstream_.read(*answer);
            if (read.has_error()) {
                co_return read;
            }
        }
        const int status = answer->head().status;
        if (status == kSwitchingProtocols) {
            co_return EgressRefusal{
                Reason::kUpstreamProtocol,
                "The host changes to a protocol that the client did not ask for."};
        }
        if (status >= 200) {
            co_return true;
        }
    }
    co_return EgressRefusal{Reason::kUpstreamProtocol, "The host sends too many interim answers."};
}

Framing Exchange::answer_framing(const MessageReader& answer) const {
    const int status = answer.head().status;
    if (const auto length = answer.content_length(); length && status != kNoContent) {
        return {Framing::Kind::kLength, *length};
    }
    if (request_.method == "HEAD" || status == kNoContent || status == kNotModified) {
        return {};
    }
    if (!answer.has_body()) {
        return {Framing::Kind::kLength, 0};
    }
    return {reader_.head().version_1_1 ? Framing::Kind::kChunked : Framing::Kind::kUntilClose, 0};
}

asio::awaitable<Next> Exchange::pass_answer(MessageReader& answer) {
    const Framing framing = answer_framing(answer);
    const bool keep =
        reader_.done() && reader_.keep_alive() && framing.kind != Framing::Kind::kUntilClose;
    const Afterwards after = keep ? Afterwards::kKeepAlive : Afterwards::kClose;
    MessageHead shown = answer.head();
    if (mask_) {
        shown = mask_->mask(std::move(shown));
    }
    const std::string head = make_client_head(shown, framing, after);
    state_.record.fields().status = answer.head().status;
    state_.answered = true;
    state_.watchdog.arm(state_.limits().idle_timeout);
    const boost::system::error_code failed = co_await client_.stream().write(head);
    if (failed) {
        const EgressRefusal gone = state_.explain(
            Reason::kClientClosed, Reason::kIdleTimeout, "The client takes no more.");
        state_.record.finish(gone.reason);
        co_return Next::kClose;
    }
    if (answer.has_body()) {
        const auto passed = co_await pass_body_down(answer, framing);
        if (passed.has_error()) {
            state_.record.finish(passed.error().reason);
            co_return Next::kClose;  // cut short: the client sees that it is not whole
        }
    }
    upstream_.close();
    state_.record.finish(Reason::kAllowed);
    if (!keep && !reader_.done()) {
        co_await client_.linger();
    }
    co_return keep ? Next::kKeepAlive : Next::kClose;
}

Step Exchange::pass_body_down(MessageReader& answer, const Framing& framing) {
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
            state_.watchdog.arm(state_.limits().idle_timeout);
            const boost::system::error_code failed = co_await client_.stream().write(piece);
            if (failed) {
                co_return state_.explain(
                    Reason::kClientClosed, Reason::kIdleTimeout, "The client takes no more.");
            }
        }
        if (last) {
            co_return true;
        }
        state_.watchdog.arm(state_.limits().idle_timeout);
        auto read = co_await upstream_.read(answer);
        if (read.has_error()) {
            co_return read;
        }
    }
}

}  // namespace cellkeep::egress
