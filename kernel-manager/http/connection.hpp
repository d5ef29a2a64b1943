// SPDX-License-Identifier: Apache-2.0
//
// One client connection: reads requests one after another (so pipelined ones are answered in
// order), writes answers, and always ends: every wait has a deadline, watched from outside by
// expire_if_due(). A client that is still sending when it gets its refusal is drained for a bounded
// while, so that the answer reaches it instead of a reset. A connection that became a WebSocket
// (websocket_session.hpp) lives as long as that. Kept alive by its own coroutine. One thread.
#pragma once

#include "kernel-manager/http/byte_stream.hpp"
#include "kernel-manager/http/head.hpp"
#include "kernel-manager/http/listener.hpp"
#include "kernel-manager/http/websocket_session.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace cellkeep::http {

class Connection;

/// The open connections. Shared between the listener and each connection's coroutine, so that it
/// outlives both.
class ConnectionRegistry {
 public:
    explicit ConnectionRegistry(ConnectionLimits limits, AccessLog log)
        : limits_(limits), log_(std::move(log)) {}
    const ConnectionLimits& limits() const { return limits_; }
    const AccessLog& log() const { return log_; }
    bool stopping() const { return stopping_; }
    void set_stopping() { stopping_ = true; }
    std::set<Connection*>& open() { return open_; }

 private:
    ConnectionLimits limits_;
    AccessLog log_;
    bool stopping_ = false;
    std::set<Connection*> open_;
};

enum class Admittance { kServe, kServerFull };

class Connection : public std::enable_shared_from_this<Connection> {
 public:
    Connection(
        std::shared_ptr<ByteStream> stream,
        const Application& application,
        std::shared_ptr<ConnectionRegistry> registry,
        Admittance admittance);
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection();

    void start();
    /// Cancels what the connection waits for if its deadline has passed; a WebSocket watches
    /// itself.
    void expire_if_due(std::chrono::steady_clock::time_point now);
    /// Closes it now if it waits for a request; otherwise after the answer that is on its way. A
    /// WebSocket is told to come back later.
    void finish();
    /// Closes it now.
    void abort();

 private:
    class Stream;  // BodyStream over the parser of the current request
    class Watch;   // sees the client go
    class Writer;  // of a body that is written while it is sent
    struct Io;     // buffers and parser: the HTTP library stays in connection.cpp
    enum class Next { kKeepAlive, kClose, kDrain };

    boost::asio::awaitable<void> run();
    boost::asio::awaitable<bool> open_stream();
    boost::asio::awaitable<Next> serve_one();
    /// The request whose head is in the parser.
    Request take_request(Response& refusal, const Route*& route);
    boost::asio::awaitable<Next> serve_websocket(Request& request, Response response);
    /// Parses what has been received already: the library would do that in another turn of the
    /// event loop. need_more: that does not suffice. Returns the bytes that it took.
    std::size_t parse_received(boost::system::error_code& error);
    /// Nothing if the head is in the parser.
    boost::asio::awaitable<std::optional<Next>> read_head();
    boost::asio::awaitable<bool> await_first_byte();
    boost::asio::awaitable<Next> refuse_head(int error_status, std::string detail);
    boost::asio::awaitable<Response> answer(const Route& route, Request& request);
    boost::asio::awaitable<Result<void>> prepare_body(const Route& route, const Request& request);
    boost::asio::awaitable<Result<std::string_view>> read_piece(std::uint64_t bytes_max);
    boost::asio::awaitable<bool> skip_short_rest();
    boost::asio::awaitable<bool> send(Response& response, bool head_only, bool keep_alive);
    boost::asio::awaitable<bool> send_file(const FileBody& file);

    // connection_stream.cpp
    boost::asio::awaitable<bool> send_stream(StreamBody& body, Framing framing);
    boost::asio::awaitable<bool> send_piece(std::string_view bytes, Framing framing);
    void begin_watch(std::function<void()> gone);
    boost::asio::awaitable<void> run_watch();
    boost::asio::awaitable<void> end_watch();

    boost::asio::awaitable<void> drain();
    void set_deadline(std::chrono::milliseconds from_now);
    void clear_deadline();
    void record(const Request& request, const Response& response);

    std::shared_ptr<ByteStream> stream_;
    const Application& application_;
    std::shared_ptr<ConnectionRegistry> registry_;
    Admittance admittance_;
    std::unique_ptr<Io> io_;
    std::shared_ptr<WebSocketSession> websocket_;  // once the connection is one
    std::unique_ptr<Watch> watch_;                 // of the present request
    std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
    std::chrono::steady_clock::time_point started_;
    bool timed_out_ = false;
    bool finishing_ = false;
    bool waiting_ = false;  // for the first byte of a request
};

}  // namespace cellkeep::http
