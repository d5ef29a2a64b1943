// SPDX-License-Identifier: Apache-2.0
//
// One client connection: reads requests one after another (so pipelined ones are answered in
// order), writes answers, and always ends: every wait has a deadline, watched from outside by
// expire_if_due(). A client that is still sending when it gets its refusal is drained for a bounded
// while, so that the answer reaches it instead of a reset. A connection that became a WebSocket
// (websocket_session.hpp) lives as long as that. Kept alive by its own coroutine. One thread.
#pragma once

#include "kernel-manager/http/connection/arrival_memory.hpp"
#include "kernel-manager/http/connection/wire.hpp"
#include "kernel-manager/http/listener.hpp"
#include "kernel-manager/http/message/head_failure.hpp"
#include "kernel-manager/http/socket/byte_stream.hpp"
#include "kernel-manager/http/websocket/websocket_session.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::http {

class Connection;
class PeerWatch;
class RequestReader;
class ResponseSender;

/// The open connections. Shared between the listener and each connection's coroutine, so that it
/// outlives both.
class ConnectionRegistry {
 public:
    explicit ConnectionRegistry(ConnectionLimits limits, AccessLog log)
        : limits_(limits),
          log_(std::move(log)),
          arrivals_(
              {limits.arrival_bytes_max,
               limits.arrival_principal_bytes_max,
               limits.arrival_wait_max}) {}
    const ConnectionLimits& limits() const { return limits_; }
    const AccessLog& log() const { return log_; }
    bool stopping() const { return stopping_; }
    void set_stopping() { stopping_ = true; }
    /// In a pause no connection without TLS reads a request (Listener::pause).
    bool rests() const { return pause_ == InPause::kRest || awaits(); }
    /// And so do those that wait for what another program can answer.
    bool awaits() const { return pause_ == InPause::kAwait; }
    void begin_pause(InPause waiting) { pause_ = waiting; }
    void end_pause() { pause_.reset(); }
    ArrivalMemory& arrivals() { return arrivals_; }
    std::set<Connection*>& open() { return open_; }
    /// Listener::stuck().
    std::vector<std::string> stuck() const;
    /// Those that rest; first those for which a request waits in the socket.
    std::vector<Connection*> resting() const;

 private:
    ConnectionLimits limits_;
    AccessLog log_;
    ArrivalMemory arrivals_;
    bool stopping_ = false;
    std::optional<InPause> pause_;
    std::set<Connection*> open_;
};

/// A client that has just come has its first request on the way.
inline constexpr std::chrono::milliseconds kFirstRequestPatience{1000};
/// In a pause a WebSocket that is being closed has this long for it. Then it is cut, so that a
/// client that does not answer ends no pause in vain.
inline constexpr std::chrono::milliseconds kPausedClosePatience{2000};
/// Likewise a TLS handshake, a head that comes in pieces, and a client that still sends after it
/// was refused. After that it is as if its time outside a pause were over.
inline constexpr std::chrono::milliseconds kPausedStepPatience{2000};

enum class ConnectionAdmission { kServe, kServerFull };

class Connection : public std::enable_shared_from_this<Connection> {
 public:
    Connection(
        std::shared_ptr<ByteStream> stream,
        const Application& application,
        std::shared_ptr<ConnectionRegistry> registry,
        ConnectionAdmission admission,
        AwaitingConnection passed = {});
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection();

    void start();
    /// Cancels what the connection waits for if its deadline has passed; a WebSocket watches
    /// itself.
    void expire_if_due(std::chrono::steady_clock::time_point now);
    /// Closes it now if it waits for a request; otherwise after the answer that is on its way. The
    /// client of a WebSocket is asked to come back later.
    void finish();
    /// For a pause. One without TLS rests, once its request is answered: what comes next stays
    /// unread in its socket. Of the others, and with InPause::kClose of all: finish(), unless a
    /// request is about to come (something has arrived that was not read, or the connection is
    /// younger than kFirstRequestPatience and has had none), or it outlasts a pause. A WebSocket
    /// that is not closed kPausedClosePatience after finish() is cut. What the client alone draws
    /// out ends after kPausedStepPatience.
    void come_to_rest(std::chrono::steady_clock::time_point now);
    bool is_resting() const { return resting_ || (registry_->awaits() && can_pass_awaiting()); }
    /// Its request waits for what another program in this process could answer.
    bool is_awaiting() const;
    /// What for (Request::awaited). Precondition: is_awaiting().
    const std::string& awaited() const;
    /// And the connection can pass with it.
    bool can_pass_awaiting() const;
    bool has_input() const { return wire_->stream->has_input(); }
    /// The pause is over.
    void go_on();
    /// The socket of a connection that rests, for another program, with the request that it waits
    /// for; here it has ended. Its client notices nothing.
    AwaitingConnection pass_on();
    /// It is a WebSocket that Listener::pause() leaves open.
    bool outlasts_pause() const { return websocket_ && outlasts_pause_; }
    /// Closes it now.
    void abort();

 private:
    enum class Next { kKeepAlive, kClose, kDrain };
    enum class Step { kOpening, kWaiting, kHead, kRequest, kEnding };

    void enter(Step step);
    /// The client alone decides how long the step takes.
    bool is_drawn_out(std::chrono::steady_clock::time_point now) const;
    /// What waits for the client ends as if its deadline were over.
    void expire();
    boost::asio::awaitable<void> run();
    boost::asio::awaitable<bool> open_stream();
    boost::asio::awaitable<bool> await_first_byte();
    bool must_rest() const;
    void finish_after_input();
    boost::asio::awaitable<void> rest();
    boost::asio::awaitable<Next> serve_one();
    boost::asio::awaitable<Next> refuse_head(HeadFailure failure);
    bool goes_on(const Response& response);
    /// The request whose head has been read. `route` stays null if it gets the refusal.
    Request take_request(Response& refusal, const Route*& route);
    boost::asio::awaitable<Response> answer(const Route& route, Request& request);
    /// Reads the whole body into the request. Returns the refusal, if there is one.
    boost::asio::awaitable<std::optional<Response>> read_body(
        const Route& route, Request& request, ArrivalMemory::Claim& memory);
    boost::asio::awaitable<Next> serve_websocket(Request& request, Response response);
    boost::asio::awaitable<Next> serve_tunnel(Request& request, Response response);
    void record(const Request& request, const Response& response);

    const Application& application_;
    std::shared_ptr<ConnectionRegistry> registry_;
    ConnectionAdmission admission_;
    std::shared_ptr<Wire> wire_;
    std::shared_ptr<RequestReader> reader_;  // null once the connection is a WebSocket
    std::shared_ptr<PeerWatch> watch_;       // of the present request
    std::unique_ptr<ResponseSender> sender_;
    std::shared_ptr<WebSocketSession> websocket_;  // once the connection is one
    const std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point started_;
    Step step_ = Step::kOpening;
    std::chrono::steady_clock::time_point step_since_ = opened_;
    bool finishing_ = false;
    std::chrono::steady_clock::time_point finishing_since_;
    bool waiting_ = false;  // for the first byte of a request
    bool resting_ = false;  // until rest_, which never goes off, is cancelled
    boost::asio::steady_timer rest_;
    bool tunnel_ = false;  // the connection is one
    bool served_ = false;  // a request
    bool outlasts_pause_ = false;
    std::string awaited_;  // of the first request, which another program has received
    bool begun_ = false;   // and has begun to answer
};

}  // namespace cellkeep::http
