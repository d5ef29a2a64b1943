// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/http/test_server.hpp"

#include "protocol/support/syscall.hpp"

#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <future>
#include <stdexcept>
#include <utility>

namespace cellkeep::http::test {

namespace {

using AnswerTask = boost::asio::awaitable<Response>;

AnswerTask answer_ok(Request& /*request*/) {
    co_return make_json(200, {{"ok", true}});
}

AnswerTask answer_echo(Request& request) {
    Response response;
    response.body = request.body;
    co_return response;
}

AnswerTask answer_stream(Request& request) {
    std::size_t bytes = 0;
    for (;;) {
        const auto piece = co_await request.stream->read();
        if (piece.has_error()) {
            const bool long_one = piece.error().code() == ErrorCode::kLimitExceeded;
            co_return to_response(make_problem(long_one ? 413 : 400, piece.error().message()));
        }
        if (piece.value().empty()) {
            break;
        }
        bytes += piece.value().size();
    }
    co_return make_json(200, {{"bytes", bytes}});
}

AnswerTask answer_file(Request& /*request*/) {
    Response response;
    UniqueFd fd(::memfd_create("digits", MFD_CLOEXEC));
    if (const Status written = write_all(fd.get(), "0123456789"); written.has_error()) {
        co_return to_response(make_problem(500, written.error().message()));
    }
    response.body = FileBody{std::move(fd), 2, 5};
    co_return response;
}

AnswerTask answer_pieces(Request& /*request*/) {
    protocol::TextSplicer text;
    text.add("[");
    for (int i = 0; i < 300; ++i) {
        text.add(i == 0 ? "" : ",").add(protocol::RawJson('"' + std::string(20'000, 'x') + '"'));
    }
    co_return make_json_text(200, text.add("]").finish());
}

AnswerTask answer_throw(Request& /*request*/) {
    throw std::runtime_error("thrown by a library");
    co_return Response{};
}

Application make_test_application(std::shared_ptr<SocketLog> sockets) {
    Application application(TokenAuth("t"), HostGuard(std::vector<std::string>()));
    const auto add = [&application](const char* method, const char* pattern, Handler handler) {
        Route route(Access::kChange, method, pattern, std::move(handler));
        route.body_bytes_max = 1000;
        if (route.pattern == "/stream" || route.pattern == "/open") {
            route.body_mode = BodyMode::kStreamed;
            route.body_bytes_max = 100'000;
        }
        if (route.pattern == "/open") {
            route.body_silence_max = std::chrono::seconds(2);
        }
        application.router().add(std::move(route));
    };
    add("GET", "/ok", answer_ok);
    add("POST", "/echo", answer_echo);
    add("PUT", "/stream", answer_stream);
    add("PUT", "/open", answer_stream);
    add("GET", "/file", answer_file);
    add("GET", "/pieces", answer_pieces);
    add("GET", "/throw", answer_throw);
    add_stream_routes(application.router(), sockets);
    add_websocket_routes(application.router(), std::move(sockets));
    return application;
}

}  // namespace

TestServer::TestServer(
    ConnectionLimits limits,
    const std::string& listen,
    Trust trust,
    std::shared_ptr<TlsContext> tls,
    InheritedSocket inherited)
    : application_(make_test_application(sockets_)) {
    limits.sweep_period = std::chrono::milliseconds(20);
    if (trust == Trust::kSameUser) {
        application_.trust_same_user_peers();
    }
    auto listener = Listener::create(
        io_,
        parse_listen_address(listen).value(),
        application_,
        limits,
        [this](const AccessRecord& record) { records_.push_back(record); },
        std::move(tls),
        std::move(inherited));
    REQUIRE(listener.has_value());
    listener_ = std::move(listener).value();
    port_ = listener_->port();
    listener_->start();
    thread_ = std::thread([this] { (void)io_.run(); });
}

void TestServer::begin_stop() {
    if (!std::exchange(stopping_, true)) {
        boost::asio::post(io_, [this] { listener_->stop(std::chrono::milliseconds(500), [] {}); });
    }
}

bool TestServer::pause(std::chrono::milliseconds patience, InPause waiting) {
    std::promise<bool> drained;
    boost::asio::post(io_, [&] {
        listener_->pause(patience, waiting, [&drained](bool all) { drained.set_value(all); });
    });
    return drained.get_future().get();
}

bool TestServer::wait_until_empty(std::chrono::milliseconds patience) {
    std::promise<bool> drained;
    boost::asio::post(io_, [&] {
        listener_->wait_until_empty(patience, [&drained](bool all) { drained.set_value(all); });
    });
    return drained.get_future().get();
}

void TestServer::resume() {
    boost::asio::post(io_, [this] { listener_->resume(); });
}

InheritedSocket TestServer::pass_on(std::size_t connections_max) {
    std::promise<InheritedSocket> passed;
    boost::asio::post(io_, [&] {
        passed.set_value(listener_->pass_on(listener_->copy_socket().value(), connections_max));
    });
    return passed.get_future().get();
}

void TestServer::stop() {
    if (thread_.joinable()) {
        begin_stop();
        thread_.join();
    }
}

void TestServer::wait_for_end_of_run() const {
    std::unique_lock lock(sockets_->mutex);
    const auto ended = [this] { return sockets_->ended > 0; };
    REQUIRE(sockets_->changed.wait_for(lock, std::chrono::seconds(20), ended));
}

void TestServer::wait_for_awaiting(int handlers) const {
    std::unique_lock lock(sockets_->mutex);
    const auto seen = [&] { return sockets_->awaiting >= handlers; };
    REQUIRE(sockets_->changed.wait_for(lock, std::chrono::seconds(20), seen));
}

void TestServer::wait_for_gone(int clients) const {
    std::unique_lock lock(sockets_->mutex);
    const auto seen = [&] { return sockets_->gone >= clients; };
    REQUIRE(sockets_->changed.wait_for(lock, std::chrono::seconds(20), seen));
}

std::vector<std::string> TestServer::heard() const {
    wait_for_end_of_run();
    const std::lock_guard lock(sockets_->mutex);
    return sockets_->heard;
}

ErrorCode TestServer::last_receive_error() const {
    wait_for_end_of_run();
    const std::lock_guard lock(sockets_->mutex);
    REQUIRE(sockets_->receive_error.has_value());
    return *sockets_->receive_error;
}

ErrorCode TestServer::last_send_error() const {
    wait_for_end_of_run();
    const std::lock_guard lock(sockets_->mutex);
    REQUIRE(sockets_->send_error.has_value());
    return *sockets_->send_error;
}

TestServer::~TestServer() {
    stop();
}

RawClient::RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    timeval patience{20, 0};
    REQUIRE(::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
    REQUIRE(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
}

RawClient::RawClient(const std::string& unix_path)
    : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(unix_path.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, unix_path.c_str(), unix_path.size() + 1);
    timeval patience{20, 0};
    REQUIRE(::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
    REQUIRE(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
}

RawClient::~RawClient() {
    (void)::close(fd_);
}

bool RawClient::send(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

std::string RawClient::read_until(std::string_view text) {
    std::array<char, 65536> buffer{};
    for (;;) {
        const std::size_t found = pending_.find(text);
        if (found != std::string::npos) {
            std::string out = pending_.substr(0, found + text.size());
            pending_.erase(0, found + text.size());
            return out;
        }
        const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), 0);
        if (got < 0) {
            FAIL("recv failed with errno " << errno);
        }
        if (got == 0) {
            return std::exchange(pending_, {});
        }
        pending_.append(buffer.data(), static_cast<std::size_t>(got));
    }
}

std::string RawClient::read_once() {
    if (!pending_.empty()) {
        return std::exchange(pending_, {});  // It came with what was read before.
    }
    std::array<char, 65536> buffer{};
    const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), 0);
    REQUIRE(got >= 0);
    return {buffer.data(), static_cast<std::size_t>(got)};
}

void RawClient::end_sending() {
    REQUIRE(::shutdown(fd_, SHUT_WR) == 0);
}

std::string RawClient::read_all() {
    static constexpr std::string_view kNever = "\x01never\x02";
    return read_until(kNever);
}

std::string request_text(
    std::string_view method,
    std::string_view target,
    std::string_view headers,
    std::string_view body) {
    std::string text(method);
    text += " ";
    text += target;
    text += " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer t\r\n";
    text += headers;
    if (!body.empty()) {
        text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    }
    text += "\r\n";
    text += body;
    return text;
}

std::string exchange(std::uint16_t port, std::string_view text) {
    RawClient client(port);
    std::string closing(text);
    if (const std::size_t line = closing.find("\r\n"); line != std::string::npos) {
        closing.insert(line + 2, "Connection: close\r\n");
    }
    (void)client.send(closing);  // Ignored: the answer says why the server closed.
    return client.read_all();
}

}  // namespace cellkeep::http::test
