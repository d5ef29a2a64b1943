// SPDX-License-Identifier: Apache-2.0
//
// TLS over a connected socket: towards the client with a certificate of TlsAuthority, towards a
// server verified against the host's name. io_context thread only.
#pragma once

#include "kernel-manager/egress/stream.hpp"
#include "kernel-manager/egress/target.hpp"

#include <boost/asio/ssl/context.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace cellkeep::egress {

class TlsStream final : public Stream {
 public:
    TlsStream(SocketStream::Socket socket, std::shared_ptr<boost::asio::ssl::context> context);
    TlsStream(const TlsStream&) = delete;
    TlsStream& operator=(const TlsStream&) = delete;
    TlsStream(TlsStream&&) = delete;
    TlsStream& operator=(TlsStream&&) = delete;
    ~TlsStream() override;

    /// The server's side of the handshake; `hello`: what the client has sent already.
    boost::asio::awaitable<boost::system::error_code> accept(std::string_view hello);
    /// The client's side; fails unless the certificate is valid for this host.
    boost::asio::awaitable<boost::system::error_code> connect(Host host);

    /// finish() says goodbye and waits for none of the peer's, which may stand still. What the peer
    /// has said is not read any more.
    void expect_no_goodbye();

    boost::asio::awaitable<Got> read_some(boost::asio::mutable_buffer where) override;
    boost::asio::awaitable<boost::system::error_code> write(std::string_view text) override;
    void end_sending() override;
    boost::asio::awaitable<void> finish() override;
    void cancel() override;
    void close() override;
    int handle() override;

 private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace cellkeep::egress
