// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/connection/relay.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include <string>
#include <utility>

namespace cellkeep::egress {

namespace asio = boost::asio;

Relay::Relay(ConnectionState& state, Side client, Side host)
    : state_(state), up_{client, host.stream, true}, down_{host, client.stream, false} {
    state_.relay = this;
}

asio::awaitable<void> Relay::run() {
    using asio::experimental::awaitable_operators::operator&&;
    state_.watchdog.arm(state_.limits().idle_timeout);
    co_await (pump(up_) && pump(down_));
    state_.record.finish(state_.stopped.value_or(Reason::kAllowed));
}

asio::awaitable<void> Relay::pump(Way& way) {
    bool goes_on = true;
    while (goes_on && !way.ended) {
        if (way.bytes == 0) {
            goes_on = co_await fill(way);
        } else {
            goes_on = co_await drain(way);
        }
    }
}

/// One read at most, so that other sessions have their turn.
asio::awaitable<bool> Relay::fill(Way& way) {
    const boost::system::error_code failed = co_await way.from.stream.wait_readable();
    if (failed) {
        fail();
        co_return false;
    }
    const Stream::Got got = way.from.stream.read_now(way.from.buffer);
    if (got.error == asio::error::would_block) {
        co_return true;
    }
    if (got.error == asio::error::eof) {
        way.to.end_sending();
        way.ended = true;
        co_return true;
    }
    if (got.error) {
        fail();
        co_return false;
    }
    Budget& budget = state_.owner->budget();
    if (way.up ? !budget.take_up(got.bytes) : !budget.take_down(got.bytes)) {
        stop(way.up ? Reason::kBytesUpLimit : Reason::kBytesDownLimit);
        co_return false;
    }
    (way.up ? state_.record.fields().bytes_up : state_.record.fields().bytes_down) += got.bytes;
    way.begin = 0;
    way.bytes = got.bytes;
    state_.watchdog.arm(state_.limits().idle_timeout);
    co_return true;
}

asio::awaitable<bool> Relay::drain(Way& way) {
    Stream::Got put = way.to.write_now(way.held());
    if (put.error == asio::error::would_block) {
        put.error = co_await way.to.wait_writable();
        put.bytes = 0;
    }
    if (put.error) {
        fail();
        co_return false;
    }
    way.begin += put.bytes;
    way.bytes -= put.bytes;
    co_return true;
}

PassedTunnel Relay::pass_on() {
    const EgressRecord& record = state_.record.fields();
    PassedTunnel passed;
    passed.target = record.target;
    passed.address = record.address;
    passed.server_name = record.server_name;
    passed.bytes_up = record.bytes_up;
    passed.bytes_down = record.bytes_down;
    passed.began_at = state_.record.began_at();
    passed.up = {std::string(up_.held()), up_.ended};
    passed.down = {std::string(down_.held()), down_.ended};
    state_.record.drop();
    return passed;
}

void Relay::go_on(const PassedTunnel& passed) {
    hold(up_, passed.up);
    hold(down_, passed.down);
}

void Relay::hold(Way& way, const PassedTunnel::Way& passed) {
    way.bytes = asio::buffer_copy(way.from.buffer, asio::buffer(passed.held));
    way.ended = passed.ended;
}

void Relay::fail() {
    stop(state_.watchdog.expired() ? Reason::kIdleTimeout : Reason::kAllowed);
}

void Relay::stop(Reason why) {
    state_.set_stopped(why);
    up_.from.stream.close();
    down_.from.stream.close();
}

}  // namespace cellkeep::egress
