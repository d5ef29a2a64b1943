// SPDX-License-Identifier: Apache-2.0
//
// A session's proxy with both its sides in one process: blocking sockets for the client and for the
// server it reaches, the proxy on a thread of its own. Everything ends with the fixture.
#pragma once

#include "kernel-manager/egress/session_proxy.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <nlohmann/json.hpp>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace cellkeep::egress {

/// Answers from a table, and counts the requests for each name.
class FakeResolver final : public Resolver {
 public:
    std::map<std::string, std::vector<Addresses>> answers;  // one after another, the last stays
    std::map<std::string, std::size_t> asked;
    std::string silent;  // a name whose answer does not come in time
    std::string held;    // a name whose answer comes when the test no longer holds it

    boost::asio::awaitable<Allowed<Addresses>> resolve(
        std::string name,
        std::chrono::milliseconds patience,
        std::shared_ptr<LookupAccount> account) override;
};

/// A connected blocking socket; every wait ends after 20 seconds. A blocking asio::ssl::stream uses
/// it as its lower layer, because over a plain socket it would wait for ever.
class Wire {
 public:
    using executor_type = boost::asio::ip::tcp::socket::executor_type;
    using lowest_layer_type = boost::asio::ip::tcp::socket::lowest_layer_type;

    explicit Wire(boost::asio::ip::tcp::socket socket);
    void send(const std::string& bytes);
    /// Reads until `end` has come, or the peer closes.
    std::string read_until(const std::string& end);
    std::string read_exactly(std::size_t bytes);
    std::string read_all();
    /// Reads an HTTP message with its Content-Length body.
    std::string read_message();
    void end_sending();
    boost::asio::ip::tcp::socket& socket() { return socket_; }

    executor_type get_executor() { return socket_.get_executor(); }
    lowest_layer_type& lowest_layer() { return socket_.lowest_layer(); }
    template <typename Buffers>
    std::size_t read_some(const Buffers& buffers, boost::system::error_code& error) {
        return read_into(*boost::asio::buffer_sequence_begin(buffers), error);
    }
    template <typename Buffers>
    std::size_t write_some(const Buffers& buffers, boost::system::error_code& error) {
        return socket_.write_some(buffers, error);
    }

 private:
    bool fill();
    std::size_t read_into(
        const boost::asio::mutable_buffer& where, boost::system::error_code& error);
    boost::asio::ip::tcp::socket socket_;
    std::string buffer_;
};

/// Accepts on 127.0.0.1 and serves one connection after another, each until `serve` returns.
class FakeServer {
 public:
    using Serve = std::function<void(Wire&)>;

    explicit FakeServer(Serve serve);
    FakeServer(const FakeServer&) = delete;
    FakeServer& operator=(const FakeServer&) = delete;
    ~FakeServer();
    std::uint16_t port() const { return port_; }
    std::size_t accepted() const;

 private:
    boost::asio::io_context io_;
    boost::asio::ip::tcp::acceptor acceptor_;
    std::uint16_t port_ = 0;
    Serve serve_;
    mutable std::mutex mutex_;
    std::size_t accepted_ = 0;
    bool stopping_ = false;
    std::thread thread_;
};

/// Reads one message, remembers it, sends the answer, closes.
FakeServer::Serve answer_with(std::string answer, std::vector<std::string>* requests = nullptr);

class ProxyFixture {
 public:
    struct Setup {
        std::vector<std::string> allow = {};  // as in network.allow
        std::vector<std::string> permitted = {"127.0.0.1"};
        std::vector<Secret> secrets = {};
        ProxyLimits limits = {};
        std::string trusted = {};  // PEM
    };

    explicit ProxyFixture(Setup setup);
    ProxyFixture(const ProxyFixture&) = delete;
    ProxyFixture& operator=(const ProxyFixture&) = delete;
    ~ProxyFixture();

    Wire connect();
    /// Sends, ends its sending side, reads to the end.
    std::string ask(const std::string& bytes);
    /// Waits for `count` records, then returns all.
    std::vector<EgressRecord> wait_for_records(std::size_t count);
    /// Waits until `count` connections are open.
    void wait_for_connections(std::size_t count);
    /// Waits until `is_so` returns true; calls it on the proxy's thread.
    void wait_until(const std::function<bool()>& is_so);
    struct Passing {
        /// On the proxy's thread, in the turn in which it passes.
        std::function<void()> before = [] {};
        /// What another operator may have changed.
        std::function<void(PassedProxy&)> change = [](PassedProxy&) {};
        std::vector<std::string> permitted = {"127.0.0.1"};
    };
    /// As soon as the proxy is at rest another one goes on with all that it leaves. Returns what
    /// was written.
    nlohmann::json pass_on(const Passing& passing);
    nlohmann::json pass_on() { return pass_on(Passing()); }
    /// Runs the action on the proxy's thread.
    void run(const std::function<void()>& action);
    SessionProxy& proxy() { return *proxy_; }
    FakeResolver& resolver() { return *resolver_; }
    /// Clients of bound hosts must trust its certificate.
    TlsAuthority& authority() { return *authority_; }

 private:
    boost::asio::io_context io_;
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
    std::shared_ptr<FakeResolver> resolver_ = std::make_shared<FakeResolver>();
    std::shared_ptr<TlsAuthority> authority_;
    ProxyParts parts_;
    std::vector<Secret> secrets_;
    std::shared_ptr<SessionProxy> proxy_;
    std::uint16_t port_ = 0;
    std::mutex mutex_;
    std::condition_variable recorded_;
    std::vector<EgressRecord> records_;
    std::thread thread_;
};

/// A listener on that address that answers no SYN, because its queue is full (listen(2)).
class DeafListener {
 public:
    explicit DeafListener(const std::string& address, std::uint16_t port = 0);
    std::uint16_t port() const { return listener_.local_endpoint().port(); }

 private:
    boost::asio::io_context io_;
    boost::asio::ip::tcp::acceptor listener_;
    std::vector<boost::asio::ip::tcp::socket> waiting_;
};

/// The status and the code of a refusal.
int status_in(const std::string& answer);
std::string denied(const std::string& answer);

}  // namespace cellkeep::egress
