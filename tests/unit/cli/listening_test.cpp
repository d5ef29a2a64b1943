// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/listening.hpp"

#include "tests/support/temporary_directory.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::cli {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using cellkeep::test::TemporaryDirectory;
using Texts = std::vector<std::string>;

TEST_CASE("without options the server listens on loopback", "[cli][listening]") {
    const auto plan = plan_listening(ServeOptions{});
    REQUIRE(plan.has_value());
    REQUIRE(plan.value().addresses.size() == 1);
    CHECK(plan.value().addresses[0].host == "127.0.0.1");
    CHECK(plan.value().addresses[0].port == 8888);
    CHECK_FALSE(plan.value().addresses_given);
    CHECK(plan.value().loopback());
    CHECK(plan.value().base_url.text() == "/");
    CHECK(plan.value().tls == nullptr);
}

TEST_CASE("one address beyond loopback is enough to count as reachable", "[cli][listening]") {
    ServeOptions options;
    options.listen = Texts{"127.0.0.1:1", "unix:/x"};
    CHECK(plan_listening(options).value().loopback());
    options.listen = Texts{"127.0.0.1:1", "0.0.0.0:1"};
    CHECK_FALSE(plan_listening(options).value().loopback());
}

TEST_CASE("a listening option that is wrong is named", "[cli][listening]") {
    ServeOptions options;
    std::string what;
    SECTION("address") {
        options.listen = Texts{"127.0.0.1:1", "nowhere"};
        what = "nowhere";
    }
    SECTION("too many addresses") {
        options.listen = Texts(17, "127.0.0.1:0");
        what = "listen";
    }
    SECTION("origin") {
        options.allow_origin = Texts{"lab.example"};
        what = "allow-origin";
    }
    SECTION("base URL") {
        options.base_url = "/a/../b";
        what = "base-url";
    }
    SECTION("certificate without a key") {
        options.tls_cert = "/c";
        what = "tls-key";
    }
    SECTION("key without a certificate") {
        options.tls_key = "/k";
        what = "tls-cert";
    }
    SECTION("a certificate that is not there") {
        options.tls_cert = "/nowhere/c.pem";
        options.tls_key = "/nowhere/k.pem";
        what = "/nowhere/c.pem";
    }
    const auto plan = plan_listening(options);
    REQUIRE(plan.has_error());
    CHECK_THAT(plan.error().message(), Contains(what));
}

TEST_CASE("several listeners start and stop together", "[cli][listening]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/s";
    ServeOptions options;
    options.listen = Texts{"unix:" + path, "127.0.0.1:0", "127.0.0.1:0"};
    options.base_url = "b";
    const ListenPlan plan = plan_listening(options).value();
    const http::Application application = make_application(plan, "t");
    boost::asio::io_context io(1);
    auto opened = Listeners::open(io, plan, application, {});
    REQUIRE(opened.has_value());
    Listeners listeners = std::move(opened).value();
    REQUIRE(listeners.urls().size() == 3);
    CHECK_THAT(listeners.urls()[0], StartsWith("http://127.0.0.1:"));
    CHECK_THAT(listeners.urls()[0], Catch::Matchers::EndsWith("/b/"));
    CHECK(listeners.urls()[2] == "unix:" + path);
    CHECK(std::filesystem::exists(path));
    listeners.start();
    int stopped = 0;
    listeners.stop(std::chrono::milliseconds(100), [&stopped] { ++stopped; });
    (void)io.run();
    CHECK(stopped == 1);
    CHECK_FALSE(std::filesystem::exists(path));
}

/// Whether a request on a new connection is answered.
bool answers(boost::asio::io_context& io, const std::string& path) {
    boost::asio::local::stream_protocol::socket client(io);
    client.connect(path);
    constexpr std::string_view kRequest = "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n";
    (void)boost::asio::write(client, boost::asio::buffer(kRequest));
    std::array<char, 12> answer{};
    bool done = false;
    boost::asio::async_read(
        client, boost::asio::buffer(answer), [&done](const auto& error, std::size_t) {
            done = true;
            CHECK_FALSE(error);
        });
    while (!done && io.run_one() > 0) {
    }
    return std::string_view(answer.data(), 9) == "HTTP/1.1 ";
}

TEST_CASE("sockets of which one cannot pass all stay where they are", "[cli][listening]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/s";
    ServeOptions options;
    // Two of one name cannot be told apart by the other program.
    const bool fails = GENERATE(true, false);
    options.listen = fails ? Texts{"unix:" + path, "127.0.0.1:0", "127.0.0.1:0"}
                           : Texts{"unix:" + path, "127.0.0.1:0"};
    const ListenPlan plan = plan_listening(options).value();
    const http::Application application = make_application(plan, "t");
    boost::asio::io_context io(1);
    Listeners listeners = Listeners::open(io, plan, application, {}).value();
    listeners.start();
    CHECK(answers(io, path));
    bool paused = false;
    listeners.pause(
        std::chrono::seconds(60), http::InPause::kRest, [&paused](bool all) { paused = all; });
    while (!paused && io.run_one() > 0) {
    }
    {
        const auto passed = listeners.pass_on(16);
        REQUIRE(passed.has_error() == fails);
        if (fails) {
            CHECK(passed.error().code() == ErrorCode::kConflict);
        } else {
            CHECK(passed.value().entries().size() == 2);
        }
    }
    // Whoever is given a path has it end with him.
    CHECK(std::filesystem::exists(path) == fails);
    if (fails) {
        listeners.resume();
        CHECK(answers(io, path));
    }
    listeners.stop(std::chrono::milliseconds(100), [] {});
    (void)io.run();
    CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("if one address is taken none is kept", "[cli][listening]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/s";
    ServeOptions options;
    options.listen = Texts{"unix:" + path, "unix:" + path};
    const ListenPlan plan = plan_listening(options).value();
    const http::Application application = make_application(plan, "t");
    boost::asio::io_context io(1);
    const auto opened = Listeners::open(io, plan, application, {});
    REQUIRE(opened.has_error());
    CHECK(opened.error().code() == ErrorCode::kConflict);
    CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("addresses are tried before a server is given up for them", "[cli][listening]") {
    const TemporaryDirectory directory;
    ServeOptions options;
    options.listen = Texts{"unix:" + directory.path() + "/s", "127.0.0.1:0"};
    const ListenPlan plan = plan_listening(options).value();
    const auto tried = [&plan](const std::optional<Texts>& passed) {
        const Status status = try_addresses(plan, passed);
        return status.has_error() ? std::optional(status.error().code()) : std::nullopt;
    };
    CHECK_FALSE(tried(Texts{}));
    CHECK(std::filesystem::is_empty(directory.path()));
    {
        boost::asio::io_context io(1);
        const http::Application application = make_application(plan, "t");
        const Listeners other = Listeners::open(io, plan, application, {}).value();
        CHECK_FALSE(tried(*options.listen));
        CHECK_FALSE(tried(std::nullopt));
        CHECK(tried(Texts{}) == ErrorCode::kConflict);
        CHECK(tried(Texts{"127.0.0.1:0"}) == ErrorCode::kConflict);
    }
    std::filesystem::remove(directory.path());
    CHECK(tried(std::nullopt) == ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace cellkeep::cli
