// SPDX-License-Identifier: Apache-2.0
//
// The connection of our own clients to a server, with a deadline. For client.cpp and
// websocket/websocket_client.cpp. One io_context thread. It is built upon the server's ByteStream:
// the HTTP library is then compiled for one kind of stream.
#pragma once

#include "kernel-manager/http/client.hpp"
#include "kernel-manager/http/socket/byte_stream.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace cellkeep::http {

/// kInvalidArgument if the host is no address or the path is too long for a socket (unix(7)).
Status check_address(const ServerAddress& server);

/// Nothing may wait on it when it ends.
class ClientStream {
 public:
    /// Connects within `patience`, which then goes on: the caller sets it anew or ends it. With TLS
    /// the server has shown its certificate when this is done. kUnavailable, kTimeout, and
    /// kInvalidArgument as check_address().
    static boost::asio::awaitable<Result<std::shared_ptr<ClientStream>>> open(
        const ServerAddress& server, std::chrono::milliseconds patience);
    ClientStream(const ClientStream&) = delete;
    ClientStream& operator=(const ClientStream&) = delete;
    ~ClientStream() = default;

    ByteStream& bytes() { return bytes_; }
    /// When the time is over, what waits fails and error() is kTimeout.
    void expires_after(std::chrono::milliseconds time);
    void expires_never() { (void)deadline_.cancel(); }
    /// Why an operation on bytes() has failed.
    Error error(const boost::system::error_code& error) const;

 private:
    ClientStream(const ServerAddress& server, const boost::asio::any_io_executor& executor);
    boost::asio::awaitable<Status> connect();

    const ServerAddress server_;
    boost::asio::steady_timer deadline_;
    bool expired_ = false;
    ByteStream bytes_;
    std::weak_ptr<ClientStream> self_;  // the deadline may come after the stream has gone
};

}  // namespace cellkeep::http
