// SPDX-License-Identifier: Apache-2.0
//
// A proxy goes from one program to the next: its clients notice nothing, whatever they do.
#include "kernel-manager/egress/passing/passed_proxy.hpp"
#include "tests/unit/egress/client_hello_bytes.hpp"
#include "tests/unit/egress/index_host.hpp"

#include <catch2/catch.hpp>

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <future>
#include <optional>
#include <semaphore>
#include <thread>
#include <utility>

using namespace cellkeep;
using namespace cellkeep::egress;
using Catch::Matchers::Contains;

namespace {

constexpr std::size_t kMuch = 12ULL << 20U;
/// More than the four sockets of a tunnel keep (tcp_rmem and tcp_wmem, tcp(7)).
constexpr std::size_t kTooMuch = 24ULL << 20U;

std::string hello_bytes() {
    return in_records(make_hello({server_name(kIndexHost)}));
}

/// No two pieces of it are equal.
std::string numbered(std::size_t bytes) {
    std::string text;
    text.reserve(bytes + 16);
    for (std::size_t i = 0; text.size() < bytes; ++i) {
        text += std::to_string(i) + ";";
    }
    text.resize(bytes);
    return text;
}

/// A tunnel to the host, behind its ClientHello.
Wire open_tunnel(ProxyFixture& fixture, const std::string& authority) {
    Wire wire = fixture.connect();
    wire.send("CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n");
    CHECK(wire.read_until("\r\n\r\n") == "HTTP/1.1 200 Connection established\r\n\r\n");
    wire.send(hello_bytes());
    // What comes together with it is no TLS.
    fixture.wait_until([&] { return fixture.proxy().traffic().bytes_up == hello_bytes().size(); });
    return wire;
}

/// Waits for the other side of a test.
class Gate {
 public:
    void open() { opened_.set_value(); }
    /// Not for ever, because a test may fail before.
    void wait() { (void)opened_.get_future().wait_for(std::chrono::seconds(20)); }

 private:
    std::promise<void> opened_;
};

Traffic traffic_of(ProxyFixture& fixture) {
    Traffic traffic;
    fixture.run([&] { traffic = fixture.proxy().traffic(); });
    return traffic;
}

/// Sends beside the test, and ends its sending.
class Sender {
 public:
    Sender(Wire& wire, const std::string& text)
        : wire_(wire), thread_([&wire, &text] {
              wire.send(text);
              wire.end_sending();
          }) {}
    Sender(const Sender&) = delete;
    Sender& operator=(const Sender&) = delete;
    ~Sender() {
        if (thread_.joinable()) {
            // The test has failed: nobody reads.
            (void)::shutdown(wire_.socket().native_handle(), SHUT_RDWR);
            thread_.join();
        }
    }
    void wait() { thread_.join(); }

 private:
    Wire& wire_;
    std::thread thread_;
};

std::string ask_on(Wire& wire, const std::string& authority) {
    wire.send(get_request(authority));
    return wire.read_message();
}

}  // namespace

TEST_CASE("a connection that waits for a request goes on with it", "[egress][passing]") {
    std::vector<std::string> requests;
    const FakeServer server(answer_with(kOkAnswer, &requests));
    const std::string authority = index_authority(server);
    ProxyFixture fixture({.allow = {authority}});
    resolve_to_loopback(fixture);
    Wire wire = fixture.connect();
    CHECK(status_in(ask_on(wire, authority)) == 200);
    const auto written = fixture.pass_on();
    CHECK(written["connections"] == nlohmann::json::array({nullptr}));
    CHECK(status_in(ask_on(wire, authority)) == 200);
    // What has come and was not read is answered by the other one, once.
    (void)fixture.pass_on({.before = [&] { wire.send(get_request(authority)); }});
    CHECK(status_in(wire.read_message()) == 200);
    CHECK(requests.size() == 3);
    CHECK(fixture.wait_for_records(3).size() == 3);
    CHECK(traffic_of(fixture).requests == 3);
}

TEST_CASE("what waits in the listener is served by the other one", "[egress][passing]") {
    const FakeServer server(answer_with(kOkAnswer));
    const std::string authority = index_authority(server);
    ProxyFixture fixture({.allow = {authority}});
    resolve_to_loopback(fixture);
    std::optional<Wire> wire;
    const auto written = fixture.pass_on({.before = [&] {
        wire.emplace(fixture.connect());
        wire->send(get_request(authority));
    }});
    CHECK(written["connections"].empty());
    CHECK(status_in(wire->read_message()) == 200);
}

TEST_CASE("a request under way is no rest", "[egress][passing]") {
    Gate asked;
    Gate go;
    const FakeServer server([&](Wire& wire) {
        (void)wire.read_message();
        asked.open();
        go.wait();
        wire.send(kOkAnswer);
    });
    const std::string authority = index_authority(server);
    ProxyFixture fixture({.allow = {authority}});
    resolve_to_loopback(fixture);
    Wire wire = fixture.connect();
    wire.send(get_request(authority));
    asked.wait();
    bool rests = true;
    fixture.run([&] { rests = fixture.proxy().is_at_rest(); });
    CHECK_FALSE(rests);
    go.open();
    CHECK(status_in(wire.read_message()) == 200);
    (void)fixture.pass_on();
}

TEST_CASE("a head that has begun is no rest, and its end is", "[egress][passing]") {
    const FakeServer server(answer_with(kOkAnswer));
    const std::string authority = index_authority(server);
    ProxyFixture fixture({.allow = {authority}});
    resolve_to_loopback(fixture);
    Wire wire = fixture.connect();
    fixture.wait_until([&] { return fixture.proxy().connections() == 1; });
    wire.send("GET http");
    fixture.wait_until([&] { return !fixture.proxy().is_at_rest(); });
    wire.send("://" + authority + "/ HTTP/1.1\r\nHost: " + authority + "\r\n\r\n");
    CHECK(status_in(wire.read_message()) == 200);
    (void)fixture.pass_on();
    CHECK(status_in(ask_on(wire, authority)) == 200);
}

TEST_CASE("a tunnel's record is written once, with all of its bytes", "[egress][passing]") {
    Gate go;
    const FakeServer server([&](Wire& wire) {
        const std::string all = wire.read_all();
        go.wait();
        wire.send("echo:" + all);
    });
    const std::string authority = index_authority(server);
    ProxyFixture fixture({.allow = {authority}});
    resolve_to_loopback(fixture);
    Wire wire = open_tunnel(fixture, authority);
    (void)fixture.pass_on();
    wire.send("more");
    wire.end_sending();
    SECTION("its way up goes on") {}
    SECTION("its way up has ended") {
        // The end is behind the bytes: it comes.
        while (fixture.pass_on()["connections"].at(0)["up"]["ended"] == false) {
        }
    }
    go.open();
    CHECK(wire.read_all() == "echo:" + hello_bytes() + "more");
    const auto records = fixture.wait_for_records(1);
    REQUIRE(records.size() == 1);
    CHECK(records[0].reason == Reason::kAllowed);
    CHECK(records[0].method == "CONNECT");
    CHECK(records[0].status == 200);
    CHECK(records[0].server_name == kIndexHost);
    CHECK(records[0].address == "127.0.0.1");
    CHECK(records[0].bytes_up == hello_bytes().size() + 4);
    CHECK(records[0].bytes_down == hello_bytes().size() + 4 + 5);
}

TEST_CASE("what a tunnel holds when one side does not read is not lost", "[egress][passing]") {
    const std::string much = numbered(kTooMuch);
    const bool up = GENERATE(true, false);
    Gate go;
    std::promise<std::string> arrived;
    const FakeServer server([&](Wire& wire) {
        if (!up) {
            wire.send(much);
            wire.end_sending();
            (void)wire.read_all();
            return;
        }
        go.wait();
        arrived.set_value(wire.read_all());
    });
    const std::string authority = index_authority(server);
    ProxyFixture fixture({.allow = {authority}});
    resolve_to_loopback(fixture);
    Wire wire = open_tunnel(fixture, authority);
    std::optional<Sender> sender;
    if (up) {
        sender.emplace(wire, much);
    }
    // Nobody reads: so in the end a way holds what it cannot write.
    for (int held = 0; held < 3;) {
        const auto written = fixture.pass_on();
        REQUIRE(written[up ? "bytes_up" : "bytes_down"].get<std::size_t>() < kTooMuch);
        const auto& way = written["connections"].at(0)[up ? "up" : "down"];
        held += way["held"].get<std::string>().empty() ? 0 : 1;
    }
    if (up) {
        go.open();
        CHECK((arrived.get_future().get() == hello_bytes() + much));
        sender->wait();
    } else {
        CHECK((wire.read_all() == much));
        wire.end_sending();
    }
    const auto record = fixture.wait_for_records(1)[0];
    CHECK(record.reason == Reason::kAllowed);
    CHECK((up ? record.bytes_up - hello_bytes().size() : record.bytes_down) == kTooMuch);
}

TEST_CASE("a tunnel in full flow passes again and again", "[egress][passing]") {
    // The server sends a share, and the next one when the proxy has passed in the middle of it.
    constexpr std::size_t kShares = 6;
    const std::string much = numbered(kMuch);
    std::counting_semaphore<> shares(1);
    const FakeServer server([&shares](Wire& wire) {
        std::array<char, 16384> piece{};
        boost::system::error_code error;
        std::size_t allowed = 0;
        while (!error) {
            const std::size_t bytes = wire.read_some(boost::asio::buffer(piece), error);
            if (allowed < bytes) {
                // Not for ever, because the test may fail before.
                (void)shares.try_acquire_for(std::chrono::seconds(20));
                allowed += kMuch / kShares + piece.size();
            }
            allowed -= bytes;
            wire.send(std::string(piece.data(), bytes));
        }
        wire.end_sending();
    });
    const std::string authority = index_authority(server);
    ProxyFixture fixture({.allow = {authority}});
    resolve_to_loopback(fixture);
    Wire wire = open_tunnel(fixture, authority);
    Sender sender(wire, much);
    auto all = std::async(std::launch::async, [&wire] { return wire.read_all(); });
    std::size_t passed = 0;
    std::uint64_t before = 0;
    while (before < kMuch) {
        const auto written = fixture.pass_on();
        const auto moved = written["bytes_down"].get<std::uint64_t>();
        if (moved > before) {
            ++passed;
            shares.release();
        }
        before = moved;
    }
    CHECK(passed >= kShares - 1);
    CHECK((all.get() == hello_bytes() + much));
    sender.wait();
    CHECK(fixture.wait_for_records(1)[0].bytes_down == kMuch + hello_bytes().size());
}

TEST_CASE("a tunnel to what is not allowed any more ends", "[egress][passing]") {
    const FakeServer server([](Wire& wire) { (void)wire.read_all(); });
    const std::string authority = index_authority(server);
    ProxyFixture fixture({.allow = {authority}});
    resolve_to_loopback(fixture);
    Wire wire = open_tunnel(fixture, authority);
    ProxyFixture::Passing passing;
    Reason reason = Reason::kAllowed;
    SECTION("the host") {
        passing.change = [](PassedProxy& proxy) { proxy.policy.allow.clear(); };
        reason = Reason::kPolicyChanged;
    }
    SECTION("the address") {
        passing.permitted = {};
        reason = Reason::kAddressRefused;
    }
    SECTION("as it is, it goes on") {
        (void)fixture.pass_on(passing);
        fixture.wait_for_connections(1);
        return;
    }
    (void)fixture.pass_on(passing);
    CHECK(wire.read_all().empty());
    CHECK(code_of(fixture.wait_for_records(1)[0].reason) == code_of(reason));
    CHECK(traffic_of(fixture).denied == 1);
}

TEST_CASE("a tunnel whose side has gone ends in the other program", "[egress][passing]") {
    const FakeServer server([](Wire& wire) { (void)wire.read_all(); });
    const std::string authority = index_authority(server);
    ProxyFixture fixture({.allow = {authority}});
    resolve_to_loopback(fixture);
    {
        Wire wire = open_tunnel(fixture, authority);
        (void)fixture.pass_on({.before = [&] {
            boost::system::error_code error;
            (void)wire.socket().set_option(boost::asio::socket_base::linger(true, 0), error);
            (void)wire.socket().close(error);  // a reset
        }});
    }
    fixture.wait_for_connections(0);
    CHECK(fixture.wait_for_records(1).size() == 1);
}

TEST_CASE("requests of the last minute and bytes count on", "[egress][passing]") {
    const FakeServer server(answer_with(kOkAnswer));
    const std::string authority = index_authority(server);
    ProxyLimits limits;
    std::string code;
    SECTION("requests") {
        limits.requests_per_minute_max = 2;
        code = "too_many_requests";
    }
    SECTION("bytes down") {
        // Two answers and not a third.
        limits.bytes_down_max = 2 * std::string(kOkAnswer).size();
        code = "bytes_down_limit";
    }
    ProxyFixture fixture({.allow = {authority}, .limits = limits});
    resolve_to_loopback(fixture);
    for (int i = 0; i < 2; ++i) {
        Wire wire = fixture.connect();
        CHECK(status_in(ask_on(wire, authority)) == 200);
        (void)fixture.pass_on();
    }
    CHECK(denied(fixture.ask(get_request(authority))) == code);
    (void)fixture.pass_on();
    CHECK(denied(fixture.ask(get_request(authority))) == code);
    CHECK(traffic_of(fixture).requests == 4);
    CHECK(traffic_of(fixture).denied == 2);
}

TEST_CASE("refusals without a line of the log are counted on", "[egress][passing]") {
    ProxyLimits limits;
    limits.refusals_logged_per_minute_max = 1;
    ProxyFixture fixture({.limits = limits});
    for (int i = 0; i < 3; ++i) {
        CHECK(denied(fixture.ask(get_request("other.example"))) == "not_allowed");
        (void)fixture.pass_on();
    }
    CHECK(fixture.wait_for_records(1).size() == 1);
    fixture.run([&] { fixture.proxy().close(); });
    const auto records = fixture.wait_for_records(2);
    CHECK(records[1].reason == Reason::kSessionEnded);
    CHECK(records[1].suppressed == 2);
}

TEST_CASE("what was passed on serves nobody, and its end is silent", "[egress][passing]") {
    ProxyFixture fixture({.allow = {"index.example"}});
    std::shared_ptr<SessionProxy> before;
    fixture.run([&] { before = fixture.proxy().shared_from_this(); });
    (void)fixture.pass_on();
    fixture.run([&] { before->close(); });
    CHECK(denied(fixture.ask(get_request("other.example"))) == "not_allowed");
    CHECK(traffic_of(fixture).requests == 1);
    CHECK(before->traffic().requests == 0);
    // It ends on its own thread.
    fixture.run([&] { before.reset(); });
}
