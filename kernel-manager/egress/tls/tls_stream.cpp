// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/tls/tls_stream.hpp"

#include "protocol/support/await.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <utility>

namespace cellkeep::egress {

namespace asio = boost::asio;

namespace {

bool expect_host(SSL* ssl, const Host& host) {
    if (host.address) {
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.text.c_str()) == 1;
    }
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, host.text.c_str()) == 1 &&
           SSL_set_tlsext_host_name(ssl, host.text.c_str()) == 1;
}

}  // namespace

struct TlsStream::State {
    State(SocketStream::Socket socket, std::shared_ptr<asio::ssl::context> shared)
        : context(std::move(shared)), stream(std::move(socket), *context) {}
    std::shared_ptr<asio::ssl::context> context;
    asio::ssl::stream<SocketStream::Socket> stream;
};

TlsStream::TlsStream(SocketStream::Socket socket, std::shared_ptr<asio::ssl::context> context)
    : state_(std::make_unique<State>(std::move(socket), std::move(context))) {}

TlsStream::~TlsStream() = default;

asio::awaitable<boost::system::error_code> TlsStream::accept(std::string_view hello) {
    auto [error, used] = co_await state_->stream.async_handshake(
        asio::ssl::stream_base::server, asio::buffer(hello.data(), hello.size()), kAwait);
    co_return error;
}

asio::awaitable<boost::system::error_code> TlsStream::connect(Host host) {
    if (!expect_host(state_->stream.native_handle(), host)) {
        co_return asio::error::make_error_code(asio::error::invalid_argument);
    }
    auto [error] = co_await state_->stream.async_handshake(asio::ssl::stream_base::client, kAwait);
    co_return error;
}

void TlsStream::expect_no_goodbye() {
    SSL_set_shutdown(state_->stream.native_handle(), SSL_RECEIVED_SHUTDOWN);
}

asio::awaitable<Stream::Got> TlsStream::read_some(asio::mutable_buffer where) {
    auto [error, bytes] = co_await state_->stream.async_read_some(where, kAwait);
    co_return Got{error, bytes};
}

asio::awaitable<boost::system::error_code> TlsStream::write(std::string_view text) {
    auto [error, bytes] =
        co_await asio::async_write(state_->stream, asio::buffer(text.data(), text.size()), kAwait);
    co_return error;
}

void TlsStream::end_sending() {
    // TLS cannot say that and go on reading as HTTP/1.1 needs it: the framing says where it ends.
}

asio::awaitable<void> TlsStream::finish() {
    if (state_->stream.next_layer().is_open()) {
        // Ignored: most peers just close.
        (void)co_await state_->stream.async_shutdown(kAwait);
    }
}

void TlsStream::cancel() {
    boost::system::error_code ignored;  // Ignored: a socket that is gone has nothing to cancel.
    (void)state_->stream.next_layer().cancel(ignored);
}

void TlsStream::close() {
    boost::system::error_code ignored;  // Ignored: closing is all that is left to do.
    (void)state_->stream.next_layer().close(ignored);
}

int TlsStream::handle() {
    return state_->stream.next_layer().native_handle();
}

}  // namespace cellkeep::egress
