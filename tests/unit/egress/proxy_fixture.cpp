// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/egress/proxy_fixture.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <future>
#include <utility>

namespace cellkeep::egress {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::chrono::seconds kPatience{20};

constexpr std::chrono::milliseconds kTick{5};

const tcp::endpoint kAnyPort(asio::ip::address_v4::loopback(), 0);

std::size_t body_length(const std::string& head) {
    const std::size_t at = head.find("Content-Length: ");
    return at == std::string::npos ? 0 : std::stoul(head.substr(at + 16));
}

}  // namespace

asio::awaitable<Allowed<Resolver::Addresses>> FakeResolver::resolve(
    std::string name,
    std::chrono::milliseconds patience,
    std::shared_ptr<LookupAccount> /*account*/) {
    if (name == silent) {
        asio::steady_timer timer(co_await asio::this_coro::executor, patience);
        co_await timer.async_wait(asio::use_awaitable);
        co_return EgressRefusal{Reason::kResolveTimeout, "No answer."};
    }
    const std::size_t time = asked[name]++;
    while (name == held) {
        asio::steady_timer timer(co_await asio::this_coro::executor, kTick);
        co_await timer.async_wait(asio::use_awaitable);
    }
    const auto found = answers.find(name);
    if (found == answers.end()) {
        co_return EgressRefusal{Reason::kResolveFailed, "No such name."};
    }
    co_return found->second.at(std::min(time, found->second.size() - 1));
}

Wire::Wire(tcp::socket socket) : socket_(std::move(socket)) {
    const timeval patience{kPatience.count(), 0};
    (void)::setsockopt(
        socket_.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

void Wire::send(const std::string& bytes) {
    boost::system::error_code ignored;  // Ignored: what is read afterwards shows it.
    (void)asio::write(socket_, asio::buffer(bytes), ignored);
}

std::size_t Wire::read_into(const asio::mutable_buffer& where, boost::system::error_code& error) {
    error.clear();
    if (buffer_.empty() && where.size() > 0 && !fill()) {
        error = asio::error::eof;  // or nothing came for too long
        return 0;
    }
    const std::size_t bytes = asio::buffer_copy(where, asio::buffer(buffer_));
    buffer_.erase(0, bytes);
    return bytes;
}

bool Wire::fill() {
    std::array<char, 16384> piece{};
    const ssize_t got = ::recv(socket_.native_handle(), piece.data(), piece.size(), 0);
    if (got > 0) {
        buffer_.append(piece.data(), static_cast<std::size_t>(got));
    }
    return got > 0;
}

std::string Wire::read_until(const std::string& end) {
    std::size_t found = std::string::npos;
    while ((found = buffer_.find(end)) == std::string::npos) {
        if (!fill()) {
            return std::exchange(buffer_, {});
        }
    }
    const std::string text = buffer_.substr(0, found + end.size());
    buffer_.erase(0, text.size());
    return text;
}

std::string Wire::read_exactly(std::size_t bytes) {
    while (buffer_.size() < bytes && fill()) {
    }
    const std::string text = buffer_.substr(0, bytes);
    buffer_.erase(0, text.size());
    return text;
}

std::string Wire::read_all() {
    while (fill()) {
    }
    return std::exchange(buffer_, {});
}

std::string Wire::read_message() {
    const std::string head = read_until("\r\n\r\n");
    return head + read_exactly(body_length(head));
}

void Wire::end_sending() {
    boost::system::error_code ignored;  // Ignored: the peer may have gone first.
    (void)socket_.shutdown(tcp::socket::shutdown_send, ignored);
}

FakeServer::FakeServer(Serve serve) : acceptor_(io_, kAnyPort), serve_(std::move(serve)) {
    port_ = acceptor_.local_endpoint().port();
    thread_ = std::thread([this] {
        while (true) {
            boost::system::error_code error;
            tcp::socket socket(io_);
            (void)acceptor_.accept(socket, error);
            {
                const std::lock_guard lock(mutex_);
                if (error || stopping_) {
                    return;
                }
                ++accepted_;
            }
            Wire wire(std::move(socket));
            serve_(wire);
        }
    });
}

FakeServer::~FakeServer() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    // A connection ends accept(2).
    boost::system::error_code ignored;
    asio::io_context io;
    tcp::socket last(io);
    (void)last.connect(tcp::endpoint(asio::ip::address_v4::loopback(), port_), ignored);
    thread_.join();
}

std::size_t FakeServer::accepted() const {
    const std::lock_guard lock(mutex_);
    return accepted_;
}

FakeServer::Serve answer_with(std::string answer, std::vector<std::string>* requests) {
    return [answer = std::move(answer), requests](Wire& wire) {
        const std::string request = wire.read_message();
        if (requests != nullptr) {
            requests->push_back(request);
        }
        wire.send(answer);
    };
}

ProxyFixture::ProxyFixture(Setup setup) : work_(io_.get_executor()) {
    std::vector<AddressRange> permitted;
    for (const std::string& text : setup.permitted) {
        permitted.push_back(parse_address_range(text).value());
    }
    NetworkPolicy policy;
    policy.mode = NetworkMode::kAllowlist;
    for (const std::string& text : setup.allow) {
        policy.allow.push_back(parse_allowed_host(text).value());
    }
    ProxyParts parts;
    parts.dialer = std::make_shared<Dialer>(resolver_, permitted);
    authority_ = TlsAuthority::create().value();
    parts.authority = authority_;
    parts.client_context = make_client_context(setup.trusted).value();
    parts.limits = setup.limits;
    parts.log = [this](const EgressRecord& record) {
        const std::lock_guard lock(mutex_);
        records_.push_back(record);
        recorded_.notify_all();
    };
    parts_ = parts;
    secrets_ = setup.secrets;
    tcp::acceptor listener(io_, kAnyPort);
    port_ = listener.local_endpoint().port();
    proxy_ = SessionProxy::open(
                 io_,
                 "ses_test",
                 std::move(policy),
                 std::move(setup.secrets),
                 std::move(parts),
                 UniqueFd(listener.release()))
                 .value();
    thread_ = std::thread([this] { (void)io_.run(); });
}

ProxyFixture::~ProxyFixture() {
    run([this] { proxy_->close(); });
    work_.reset();
    thread_.join();
}

nlohmann::json ProxyFixture::pass_on(const Passing& passing) {
    nlohmann::json written;
    wait_until([&] {
        if (!proxy_->is_at_rest()) {
            return false;
        }
        passing.before();
        PassedProxy left = proxy_->pass_on();
        std::vector<UniqueFd> fds;
        written = write_proxy(left, fds);
        // As bytes, which is how it goes to another program.
        const auto text = nlohmann::json::from_cbor(nlohmann::json::to_cbor(written));
        auto read = read_proxy(text, std::move(fds), Budget::Clock::now());
        passing.change(read.value());
        std::vector<AddressRange> permitted;
        for (const std::string& range : passing.permitted) {
            permitted.push_back(parse_address_range(range).value());
        }
        parts_.dialer = std::make_shared<Dialer>(resolver_, permitted);
        proxy_ = SessionProxy::go_on(
                     io_, "ses_test", std::move(read).value(), std::vector(secrets_), parts_)
                     .value();
        return true;
    });
    return written;
}

void ProxyFixture::run(const std::function<void()>& action) {
    std::promise<void> done;
    asio::post(io_, [&] {
        action();
        done.set_value();
    });
    done.get_future().get();
}

Wire ProxyFixture::connect() {
    tcp::socket socket(io_);
    socket.connect(tcp::endpoint(asio::ip::address_v4::loopback(), port_));
    return Wire(std::move(socket));
}

std::string ProxyFixture::ask(const std::string& bytes) {
    Wire wire = connect();
    wire.send(bytes);
    wire.end_sending();
    return wire.read_all();
}

void ProxyFixture::wait_until(const std::function<bool()>& is_so) {
    struct Watch {
        explicit Watch(asio::io_context& io) : timer(io) {}
        asio::steady_timer timer;
        std::promise<void> done;
    };
    // The proxy's thread touches nothing of this frame after the wait was given up.
    const auto watch = std::make_shared<Watch>(io_);
    auto future = watch->done.get_future();
    const auto ask = [watch, is_so](
                         const auto& again, const boost::system::error_code& error) -> void {
        if (error) {
            return;
        }
        if (is_so()) {
            watch->done.set_value();
            return;
        }
        watch->timer.expires_after(kTick);
        watch->timer.async_wait(
            [again](const boost::system::error_code& failed) { again(again, failed); });
    };
    asio::post(io_, [ask] { ask(ask, boost::system::error_code()); });
    const bool there = future.wait_for(kPatience) == std::future_status::ready;
    run([watch] { watch->timer.cancel(); });
    REQUIRE(there);
}

void ProxyFixture::wait_for_connections(std::size_t count) {
    wait_until([this, count] { return proxy_->connections() == count; });
}

std::vector<EgressRecord> ProxyFixture::wait_for_records(std::size_t count) {
    std::unique_lock lock(mutex_);
    const bool there =
        recorded_.wait_for(lock, kPatience, [&] { return records_.size() >= count; });
    REQUIRE(there);
    return records_;
}

DeafListener::DeafListener(const std::string& address, std::uint16_t port) : listener_(io_) {
    listener_.open(tcp::v4());
    listener_.bind(tcp::endpoint(asio::ip::make_address(address), port));
    listener_.listen(0);
    for (int i = 0; i < 4; ++i) {
        waiting_.emplace_back(io_, tcp::v4());
        waiting_.back().native_non_blocking(true);
        const tcp::endpoint endpoint = listener_.local_endpoint();
        // Ignored: the connection is in progress, or never completes.
        (void)::connect(
            waiting_.back().native_handle(),
            endpoint.data(),
            static_cast<socklen_t>(endpoint.size()));
    }
}

int status_in(const std::string& answer) {
    return answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9, 3)) : 0;
}

std::string denied(const std::string& answer) {
    const std::string name = "X-Cellkeep-Deny: ";
    const std::size_t at = answer.find(name);
    if (at == std::string::npos) {
        return {};
    }
    const std::size_t from = at + name.size();
    return answer.substr(from, answer.find("\r\n", from) - from);
}

}  // namespace cellkeep::egress
