// SPDX-License-Identifier: Apache-2.0
//
// A listener on a free loopback port, on a thread of its own, and a client that sends raw bytes.
#pragma once

#include "kernel-manager/http/listener.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace cellkeep::http::test {

/// What the WebSocket routes saw, shared between the server's thread and the test's.
struct SocketLog {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<ErrorCode> receive_error;
    std::optional<ErrorCode> send_error;
    int ended = 0;
    int gone = 0;                    // clients that a handler saw go
    int awaiting = 0;                // handlers that have begun to wait for what may pass
    std::vector<std::string> heard;  // of a client that was asked to leave
};

/// /echo-socket sends back what comes and selects v1.test if it is offered; /flood-socket sends
/// until it fails; /large-socket sends 40 MB; /pieces-socket sends one message of three pieces;
/// /proving-socket proves receipt, sends back what comes, 5 MB for "large" and how many messages
/// are proved for "report"; /leaving-socket outlasts a pause, sends back what comes, and after
/// "leave" closes with 1012 and notes what still comes; /ending-socket returns, /policy-socket
/// closes with 1008, /throwing-socket throws.
void add_websocket_routes(Router& router, std::shared_ptr<SocketLog> log);

/// GET /stream/lines writes ten lines; /stream/flood until it fails; /stream/empty nothing;
/// /stream/cut fails in the middle, /stream/throw throws there; /stream/hold writes "begun" and
/// waits until the client goes or a client asks GET /stream/release; POST /stream/watch answers
/// "released", or "gone" after its client has gone. POST /stream/await answers "here" when it is
/// released, and in another program what it waits for (ClientWatch::await); GET writes "begun"
/// before, and goes on in another program. /stream/foreign passes on another server's 404
/// of a known length; /tunnel is one that sends back what comes, until "." comes.
void add_stream_routes(Router& router, std::shared_ptr<SocketLog> log);

/// Whether the server's own user needs a token over a Unix socket.
enum class Trust { kToken, kSameUser };

/// Routes: GET /ok, POST /echo (answers the body; at most 1000 bytes), PUT /stream (answers how
/// many bytes came; at most 100000), GET /file (ten digits), GET /throw. The token is "t".
class TestServer {
 public:
    explicit TestServer(
        ConnectionLimits limits = {},
        const std::string& listen = "127.0.0.1:0",
        Trust trust = Trust::kToken,
        std::shared_ptr<TlsContext> tls = nullptr,
        InheritedSocket inherited = {});
    ~TestServer();
    TestServer(const TestServer&) = delete;
    TestServer& operator=(const TestServer&) = delete;

    std::uint16_t port() const { return port_; }
    std::string url() const { return listener_->url(); }
    /// Stops the listener; stop() waits until its thread has ended.
    void begin_stop();
    void stop();
    /// Listener::pause(): what `done` learns. resume() and pass_on() likewise.
    bool pause(std::chrono::milliseconds patience, InPause waiting = InPause::kRest);
    bool wait_until_empty(std::chrono::milliseconds patience);
    void resume();
    InheritedSocket pass_on(std::size_t connections_max = 16);
    /// Until a WebSocket's handler has returned.
    void wait_for_end_of_run() const;
    /// How the last WebSocket's receive() or send() failed, after it ended.
    ErrorCode last_receive_error() const;
    ErrorCode last_send_error() const;
    /// What clients said after they were asked to leave, when a handler has returned.
    std::vector<std::string> heard() const;
    /// Waits until this number of handlers has begun to wait for what may pass.
    void wait_for_awaiting(int handlers) const;
    /// Waits until this number of handlers has seen its client go.
    void wait_for_gone(int clients) const;
    /// What was logged; after stop().
    const std::vector<AccessRecord>& records() const { return records_; }

 private:
    boost::asio::io_context io_{1};
    std::shared_ptr<SocketLog> sockets_ = std::make_shared<SocketLog>();
    Application application_;
    std::unique_ptr<Listener> listener_;
    std::vector<AccessRecord> records_;
    std::uint16_t port_ = 0;
    bool stopping_ = false;
    std::thread thread_;
};

/// A blocking connection.
class RawClient {
 public:
    explicit RawClient(std::uint16_t port);
    explicit RawClient(const std::string& unix_path);
    ~RawClient();
    RawClient(const RawClient&) = delete;
    RawClient& operator=(const RawClient&) = delete;

    /// False if the server has closed; what it said can still be read.
    bool send(std::string_view bytes);
    /// Up to and including the first occurrence of text; everything if the server closes before.
    std::string read_until(std::string_view text);
    /// What one recv(2) gives.
    std::string read_once();
    /// Until the server closes.
    std::string read_all();
    /// Sends nothing any more: the server sees this end closed.
    void end_sending();

 private:
    int fd_ = -1;
    std::string pending_;
};

/// A request with Host, the token and the given header lines ("Name: value\r\n").
std::string request_text(
    std::string_view method,
    std::string_view target,
    std::string_view headers = {},
    std::string_view body = {});

/// Sends, closes after the answer (Connection: close is added), and gives the whole answer.
std::string exchange(std::uint16_t port, std::string_view text);

}  // namespace cellkeep::http::test
