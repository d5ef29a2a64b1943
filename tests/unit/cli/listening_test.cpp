// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/listening.hpp"

#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <string>
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

}  // namespace
}  // namespace cellkeep::cli
