// SPDX-License-Identifier: Apache-2.0
//
// The bytes of an opaque tunnel, both ways. Whatever it waits for, all that is known of the tunnel
// is in its two sockets and in what each way holds: so it can go to another program at any moment,
// and no byte is lost or comes twice. io_context thread only.
#pragma once

#include "kernel-manager/egress/connection/connection_state.hpp"
#include "kernel-manager/egress/passing/passed_proxy.hpp"
#include "kernel-manager/egress/stream.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>

#include <cstddef>
#include <string_view>

namespace cellkeep::egress {

class Relay {
 public:
    /// A side, and where that is kept which came from it.
    struct Side {
        SocketStream& stream;
        boost::asio::mutable_buffer buffer;  // of kRelayBytesMax
    };
    /// All of them must outlive it. The record is of the tunnel.
    Relay(ConnectionState& state, Side client, Side host);
    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;
    ~Relay() { state_.relay = nullptr; }

    /// Until both ways have ended. One that fails ends both.
    boost::asio::awaitable<void> run();
    std::size_t held() const { return up_.bytes + down_.bytes; }
    /// What another program goes on with, besides the sockets, which it has, too. This one ends
    /// without a record.
    PassedTunnel pass_on();
    /// What another program had read and not written, before run().
    void go_on(const PassedTunnel& passed);

 private:
    struct Way {
        Side from;
        SocketStream& to;
        bool up;
        std::size_t begin = 0;  // of what is held, in the buffer
        std::size_t bytes = 0;
        bool ended = false;  // the one side says no more, and the other knows it

        std::string_view held() const {
            return {static_cast<const char*>(from.buffer.data()) + begin, bytes};
        }
    };
    boost::asio::awaitable<void> pump(Way& way);
    boost::asio::awaitable<bool> fill(Way& way);
    boost::asio::awaitable<bool> drain(Way& way);
    static void hold(Way& way, const PassedTunnel::Way& passed);
    void fail();
    void stop(Reason why);

    ConnectionState& state_;
    Way up_;
    Way down_;
};

}  // namespace cellkeep::egress
