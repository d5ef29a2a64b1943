// SPDX-License-Identifier: Apache-2.0
//
// A session's network as one program writes it down and the next one puts it in, or does without.
#include "kernel-manager/session/passing/passed_network.hpp"

#include "kernel-manager/egress/egress_service.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <catch2/catch.hpp>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

/// A server, as far as networks go.
class Host {
 public:
    explicit Host(const std::vector<std::string>& ceiling) {
        egress::EgressConfig config;
        for (const std::string& text : ceiling) {
            config.ceiling.push_back(egress::parse_ceiling(text).value());
        }
        egress_service = egress::EgressService::create(io, std::move(config)).value();
    }
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;
    ~Host() {
        for (SessionSetup& setup : made) {
            if (setup.proxy) {
                setup.proxy->close();
            }
        }
        (void)io.run_for(std::chrono::seconds(20));
    }

    SessionSetup& make_setup() {
        SessionSetup& setup = made.emplace_back();
        setup.id = "ses_1";
        setup.egress_service = egress_service;
        setup.log = [this](const std::string& line) { lines.push_back(line); };
        return setup;
    }
    /// As the factory opens it.
    SessionSetup& make_with_network(const std::vector<std::string>& allow) {
        egress::NetworkPolicy policy;
        policy.mode = egress::NetworkMode::kAllowlist;
        for (const std::string& text : allow) {
            policy.allow.push_back(egress::parse_allowed_host(text).value());
        }
        boost::asio::ip::tcp::acceptor listener(io, {boost::asio::ip::address_v4::loopback(), 0});
        SessionSetup& setup = make_setup();
        auto opened = egress_service->open(setup.id, policy, UniqueFd(listener.release())).value();
        setup.proxy = std::move(opened.proxy);
        setup.network_env = std::move(opened.environment);
        return setup;
    }

    boost::asio::io_context io;
    std::shared_ptr<egress::EgressService> egress_service;
    std::deque<SessionSetup> made;
    std::vector<std::string> lines;
};

PassedSession pass(const SessionSetup& setup) {
    PassedSession passed;
    passed.id = setup.id;
    const json network = write_network(setup, passed.network);
    passed.state = json::from_cbor(json::to_cbor(json::object({{"network", network}})));
    return passed;
}

TEST_CASE("a network arrives with its variables", "[session][passing]") {
    Host host({"*:443"});
    const SessionSetup& before = host.make_with_network({"a.example", "b.example"});
    CHECK(bytes_of_network(before) > 0);
    PassedSession passed = pass(before);
    CHECK(passed.network.size() == 1);
    SessionSetup& after = host.make_setup();
    read_network(passed, after);
    REQUIRE(after.proxy);
    CHECK(after.proxy->policy() == before.proxy->policy());
    CHECK(after.network_env == before.network_env);
    CHECK(passed.network.empty());
    CHECK(host.lines.empty());
}

TEST_CASE("a session without a network passes none", "[session][passing]") {
    Host host({"*:443"});
    PassedSession passed = pass(host.make_setup());
    CHECK(passed.network.empty());
    CHECK(bytes_of_network(host.made.back()) == 0);
    SessionSetup& after = host.make_setup();
    SECTION("as this program says it") {}
    SECTION("as a program of an older format says it") {
        passed.state.erase("network");
    }
    read_network(passed, after);
    CHECK_FALSE(after.proxy);
    CHECK(host.lines.empty());
}

TEST_CASE(
    "what the operator does not allow any more is taken away, and said", "[session][passing]") {
    Host before({"*:443"});
    PassedSession passed = pass(before.make_with_network({"a.example", "b.example"}));
    Host host({"a.example:443"});
    SessionSetup& after = host.make_setup();
    read_network(passed, after);
    REQUIRE(after.proxy);
    REQUIRE(after.proxy->policy().allow.size() == 1);
    CHECK(after.proxy->policy().allow[0].host == "a.example");
    REQUIRE(host.lines.size() == 1);
    CHECK_THAT(host.lines[0], Contains("session ses_1") && Contains("b.example:443"));
}

TEST_CASE("with wrong values a session goes on without its network", "[session][passing]") {
    Host host({"*:443"});
    PassedSession passed = pass(host.make_with_network({"a.example"}));
    SessionSetup& after = host.make_setup();
    json& network = passed.state["network"];
    SECTION("no object") {
        network = "proxy";
    }
    SECTION("no proxy") {
        network.erase("proxy");
    }
    SECTION("a proxy of another form") {
        network["proxy"]["allow"] = 5;
    }
    SECTION("no variables") {
        network.erase("variables");
    }
    SECTION("a variable without a value") {
        network["variables"][0] = "HTTP_PROXY";
    }
    SECTION("a variable without a name") {
        network["variables"][0] = "=x";
    }
    SECTION("a variable with a zero byte") {
        network["variables"][0] = std::string("A=\0", 3);
    }
    SECTION("a variable that is a number") {
        network["variables"][0] = 3;
    }
    SECTION("a variable more than there may be") {
        network["variables"] = std::vector<std::string>(kNetworkVariablesMax + 1, "A=b");
    }
    SECTION("no listener") {
        passed.network.clear();
    }
    SECTION("a server that gives no network") {
        after.egress_service = nullptr;
    }
    SECTION("as many variables as there may be are taken") {
        network["variables"] = std::vector<std::string>(kNetworkVariablesMax, "A=b");
        read_network(passed, after);
        CHECK(after.proxy);
        return;
    }
    read_network(passed, after);
    CHECK_FALSE(after.proxy);
    CHECK(after.network_env.empty());
    CHECK(passed.network.empty());
    REQUIRE(host.lines.size() == 1);
    CHECK_THAT(host.lines[0], Contains("session ses_1 goes on without its network: "));
}

TEST_CASE("an authority is two texts or none", "[session][passing]") {
    CHECK(write_authority(std::nullopt).is_null());
    CHECK_FALSE(read_authority(json()).value().has_value());
    const json text = write_authority(egress::TlsAuthority::Passed{"k", "c"});
    const auto read = read_authority(text).value();
    REQUIRE(read.has_value());
    CHECK(read->key == "k");
    CHECK(read->certificate == "c");
    for (const json& wrong : std::vector<json>{
             json("text"),
             json(5),
             json::array({"k", "c"}),
             json::object({{"key", "k"}}),
             json::object({{"certificate", "c"}}),
             json::object({{"key", 1}, {"certificate", "c"}})}) {
        CAPTURE(wrong);
        CHECK(read_authority(wrong).error().code() == ErrorCode::kProtocol);
    }
}

}  // namespace
}  // namespace cellkeep::session
