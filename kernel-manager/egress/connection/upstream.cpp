// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/connection/upstream.hpp"

#include "kernel-manager/egress/tls/tls_stream.hpp"

#include <utility>

namespace cellkeep::egress {

namespace asio = boost::asio;

Step Upstream::open(const Authority& to, bool tls) {
    SessionProxy& owner = *state_.owner;
    reset();
    state_.watchdog.disarm();  // the dialer has deadlines of its own
    asio::any_io_executor executor = owner.io().get_executor();
    Authority copy = to;
    const ProxyLimits most = state_.limits();
    dialing_ = std::make_shared<Dialing>(owner.lookups());
    std::shared_ptr<Dialing> dialing = dialing_;
    auto dialed = co_await owner.parts().dialer->dial(
        std::move(executor), std::move(copy), most, std::move(dialing));
    dialing_.reset();
    if (state_.stopped) {
        co_return EgressRefusal{*state_.stopped, "The connection was ended from outside."};
    }
    if (dialed.has_error()) {
        co_return dialed.error();
    }
    state_.record.fields().address = dialed.value()->address.to_string();
    if (!tls) {
        stream_ = std::make_unique<SocketStream>(std::move(dialed.value()->socket));
        co_return true;
    }
    auto stream = std::make_unique<TlsStream>(
        std::move(dialed.value()->socket), owner.parts().client_context);
    TlsStream& secured = *stream;
    stream_ = std::move(stream);
    state_.watchdog.arm(state_.limits().head_timeout);
    Host host = to.host;
    const boost::system::error_code failed = co_await secured.connect(std::move(host));
    if (failed) {
        co_return state_.explain(
            Reason::kUpstreamTls,
            Reason::kUpstreamTimeout,
            "No TLS connection with a certificate that is valid for " + to.host.text + ".");
    }
    co_return true;
}

Step Upstream::send(std::string text) {
    if (!state_.owner->budget().take_up(text.size())) {
        co_return EgressRefusal{
            Reason::kBytesUpLimit,
            "The session has sent its " + std::to_string(state_.limits().bytes_up_max) + " bytes."};
    }
    state_.record.fields().bytes_up += text.size();
    state_.watchdog.arm(state_.limits().idle_timeout);
    const boost::system::error_code failed = co_await stream_->write(text);
    if (failed) {
        co_return state_.explain(
            Reason::kUpstreamClosed, Reason::kUpstreamTimeout, "The host takes no more.");
    }
    co_return true;
}

Step Upstream::read(MessageReader& answer) {
    if (received_.empty()) {
        const Stream::Got got = co_await stream_->read_some(asio::buffer(buffer_));
        const bool at_end = got.error == asio::error::eof;
        if (at_end && answer.head_done() && answer.end().has_value()) {
            co_return true;
        }
        if (got.error) {
            co_return state_.explain(
                Reason::kUpstreamClosed,
                Reason::kUpstreamTimeout,
                "The host's answer did not come to its end.");
        }
        if (!state_.owner->budget().take_down(got.bytes)) {
            co_return EgressRefusal{
                Reason::kBytesDownLimit,
                "The session has received its " + std::to_string(state_.limits().bytes_down_max) +
                    " bytes."};
        }
        state_.record.fields().bytes_down += got.bytes;
        received_.assign(buffer_.data(), got.bytes);
    }
    const auto used = answer.feed(received_);
    if (used.has_error()) {
        co_return EgressRefusal{
            Reason::kUpstreamProtocol, "The host's answer: " + used.error().message() + "."};
    }
    received_.erase(0, used.value());
    co_return true;
}

void Upstream::close() {
    if (dialing_) {
        dialing_->cancel();
    }
    if (stream_) {
        stream_->close();
    }
}

}  // namespace cellkeep::egress
