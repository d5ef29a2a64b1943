// SPDX-License-Identifier: Apache-2.0
//
// The listening socket and its connections. Owns: the acceptor, the registry of open connections,
// the one timer that watches every connection's deadline. Never: looks into a request. Everything
// on the io_context's thread; run the io_context to its end after stop() before destroying the
// listener.
#pragma once

#include "kernel-manager/http/application.hpp"
#include "kernel-manager/http/socket/tls.hpp"
#include "kernel-manager/http/socket/unix_socket.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::http {

/// One answered request, for the log. No query string: it may hold the token.
struct AccessRecord {
    std::string remote;
    std::string method;
    std::string path;
    std::string principal;  // empty: the request was not authenticated
    int status = 0;
    std::uint64_t bytes = 0;  // of the answer's body
    std::chrono::microseconds duration{0};
    std::string note;  // why it never became a request: a failed TLS handshake
};
using AccessLog = std::function<void(const AccessRecord&)>;

/// The bounds of protocol/limits.hpp; tests set smaller ones.
struct ConnectionLimits {
    std::size_t connections_max = limits::kHttpConnectionsMax;
    std::size_t head_bytes_max = limits::kHttpHeadBytesMax;
    std::uint64_t drain_bytes_max = limits::kHttpDrainBytesMax;
    std::chrono::milliseconds head_timeout = limits::kHttpHeadTimeout;
    std::chrono::milliseconds body_timeout = limits::kHttpBodyTimeout;
    std::uint64_t body_bytes_per_second = limits::kHttpBodyBytesPerSecond;
    std::size_t arrival_bytes_max = limits::kArrivalBytesMax;
    std::size_t arrival_principal_bytes_max = limits::kArrivalPrincipalBytesMax;
    std::size_t arrival_free_bytes_max = limits::kArrivalFreeBytesMax;
    std::chrono::milliseconds arrival_wait_max = limits::kArrivalWaitMax;
    std::chrono::milliseconds idle_timeout = limits::kHttpIdleTimeout;
    std::chrono::milliseconds drain_timeout = limits::kHttpDrainTimeout;
    std::chrono::milliseconds stream_stall_max = limits::kHttpStreamStallMax;
    std::size_t ahead_bytes_max = limits::kHttpAheadBytesMax;
    std::size_t websocket_message_bytes_max = limits::kFrameBytesMax;
    std::chrono::milliseconds websocket_ping_interval = limits::kWebSocketPingInterval;
    std::chrono::milliseconds websocket_pong_timeout = limits::kWebSocketPongTimeout;
    std::chrono::milliseconds websocket_stall_max = limits::kWebSocketStallMax;
    /// How often deadlines are looked at while there is a connection, and so how late a timeout may
    /// be.
    std::chrono::milliseconds sweep_period{500};
};

struct ListenAddress {
    std::string host;  // a numeric address; "localhost" becomes 127.0.0.1
    std::uint16_t port = 0;
    bool loopback = true;  // only this machine reaches it
    std::string path{};    // of a Unix socket; empty: none of the above counts if it is not
};

/// "HOST:PORT", "[V6]:PORT", "unix:PATH". kInvalidArgument.
Result<ListenAddress> parse_listen_address(std::string_view text);
/// The same text of an address.
std::string to_text(const ListenAddress& address);

/// A connection whose client waits for an answer that another program in this process gives.
struct AwaitingConnection {
    UniqueFd fd;
    std::string head;     // of its request, whose body has been read
    std::string awaited;  // Request::awaited
    bool begun = false;   // a part of the answer has been sent
};
/// Of a listener, and the bytes of their heads: others make an upgrade wait.
inline constexpr std::size_t kAwaitingConnectionsMax = 512;
inline constexpr std::size_t kAwaitingHeadBytesMax = 8ULL << 10U;

/// A socket that listens already: another program has made it.
struct InheritedSocket {
    UniqueFd fd;                               // invalid: none
    std::optional<UnixSocketFile> file;        // of a Unix socket whose path is ours to remove
    std::vector<UniqueFd> connections;         // at rest; a request may wait in the socket
    std::vector<AwaitingConnection> awaiting;  // of clients that wait for an answer
};
/// Where it listens. kInvalidArgument if it does not, or is neither of TCP nor a Unix socket with
/// a path.
Result<ListenAddress> address_of(const UniqueFd& socket);
/// kInvalidArgument if it is no stream socket, or one that listens.
Status check_connection(const UniqueFd& socket);

class ConnectionRegistry;

/// What becomes, in a pause, of connections without TLS that wait for a request.
enum class InPause {
    kRest,   // for a program that takes connections over: what comes stays unread in the socket
    kAwait,  // the same for one that also takes over what the answers of requests wait for: a
             // connection with such a request rests, too
    kClose,  // for one that takes no connection over: what has come is answered first
};

class Listener {
 public:
    /// Binds and listens (port 0: any free one). kConflict if the port or the path is taken. A
    /// Unix socket is for this user only (0600) and removed by stop(); TLS is not spoken on it.
    /// inherited: listens there already, and nothing is bound.
    static Result<std::unique_ptr<Listener>> create(
        boost::asio::io_context& io,
        const ListenAddress& address,
        const Application& application,
        ConnectionLimits limits,
        AccessLog log,
        std::shared_ptr<TlsContext> tls = nullptr,
        InheritedSocket inherited = {});
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    ~Listener();

    void start();
    /// No new connections; those that wait for a request are closed, those that are answering one
    /// finish it, at most `patience`. Then calls `stopped`, once.
    void stop(std::chrono::milliseconds patience, std::function<void()> stopped);

    /// New connections wait in the kernel's queue, and new requests in the sockets of connections,
    /// which rest; those that are answering one finish it. One with TLS, and with InPause::kClose
    /// each, is closed when it waits for a request and none has come. `done` learns whether all
    /// rest or are gone in time, but for the WebSockets that outlast a pause (WebSocketUpgrade).
    void pause(std::chrono::milliseconds patience, InPause waiting, std::function<void(bool)> done);
    /// In a pause, when those WebSockets are being closed: `done` learns whether no connection is
    /// left in time, but for those that rest.
    void wait_until_empty(std::chrono::milliseconds patience, std::function<void(bool)> done);
    /// After pause(): serves again.
    void resume();
    /// What connections wait for (Request::awaited) that another program could answer, and that
    /// cannot pass: with TLS, a long head, a chunked body, a client that has sent more or that
    /// takes nothing at present; and what is beyond kAwaitingConnectionsMax.
    std::vector<std::string> stuck() const;
    /// The socket once more, for pass_on(). All that can fail of it.
    Result<UniqueFd> copy_socket() const;
    /// The socket, for another program. It goes on listening when this listener stops. In a pause
    /// up to connections_max of the connections that rest come with it, and with InPause::kAwait
    /// those that wait for what the program answers. copy: of copy_socket().
    InheritedSocket pass_on(UniqueFd copy, std::size_t connections_max);

    std::uint16_t port() const;
    /// "http://127.0.0.1:8888", "https://…", "unix:/path".
    std::string url() const;

 private:
    struct State;
    explicit Listener(std::unique_ptr<State> state);
    boost::asio::awaitable<void> accept_loop();
    boost::asio::awaitable<void> sweep_loop();
    enum class Until { kPaused, kEmpty };
    void drain_for(Until until, std::chrono::milliseconds patience, std::function<void(bool)> done);
    boost::asio::awaitable<void> drain(
        Until until,
        std::chrono::steady_clock::time_point deadline,
        std::function<void(bool)> done);
    bool is_drained(Until until) const;
    std::unique_ptr<State> state_;
};

}  // namespace cellkeep::http
