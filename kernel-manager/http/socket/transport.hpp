// SPDX-License-Identifier: Apache-2.0
//
// The socket of a byte stream, in the clear or behind TLS. For byte_stream.cpp only: this is where
// the TLS library is compiled. One io_context thread.
#pragma once

#include "kernel-manager/http/socket/tls.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/stream.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace cellkeep::http {

class Transport {
 public:
    using Socket = boost::asio::generic::stream_protocol::socket;

    /// tls: null for none.
    Transport(Socket socket, std::shared_ptr<TlsContext> tls)
        : socket_(std::move(socket)), context_(std::move(tls)) {
        if (context_) {
            tls_.emplace(socket_, context_->native());
        }
    }

    bool has_tls() const { return tls_.has_value(); }
    Socket& socket() { return socket_; }
    boost::asio::ssl::stream<Socket&>& tls() { return *tls_; }
    boost::asio::ssl::stream_base::handshake_type handshake() const {
        return context_->is_client() ? boost::asio::ssl::stream_base::client
                                     : boost::asio::ssl::stream_base::server;
    }

    template <typename Buffers, typename Handler>
    void async_read_some(const Buffers& buffers, Handler handler) {
        if (tls_) {
            tls_->async_read_some(buffers, std::move(handler));
        } else {
            socket_.async_read_some(buffers, std::move(handler));
        }
    }

    template <typename Buffers, typename Handler>
    void async_write_some(const Buffers& buffers, Handler handler) {
        if (!tls_) {
            socket_.async_write_some(buffers, std::move(handler));
            return;
        }
        // The TLS library takes one buffer at a time: a frame's head would be a record and a
        // segment of its own. One record holds 16 KB (RFC 8446, section 5.1).
        const auto first = boost::asio::buffer_sequence_begin(buffers);
        if (first == boost::asio::buffer_sequence_end(buffers) || first->size() >= kRecordBytes) {
            tls_->async_write_some(buffers, std::move(handler));
            return;
        }
        record_.resize(kRecordBytes);
        record_.resize(boost::asio::buffer_copy(boost::asio::buffer(record_), buffers));
        tls_->async_write_some(boost::asio::buffer(record_), std::move(handler));
    }

 private:
    static constexpr std::size_t kRecordBytes = 16ULL << 10U;

    Socket socket_;
    std::shared_ptr<TlsContext> context_;
    std::optional<boost::asio::ssl::stream<Socket&>> tls_;
    std::vector<char> record_;
};

}  // namespace cellkeep::http
