// SPDX-License-Identifier: Apache-2.0
//
// What one program writes of a session's proxy, and the next one reads or refuses.
#include "kernel-manager/egress/passing/passed_proxy.hpp"

#include "protocol/limits.hpp"
#include "protocol/support/passed_time.hpp"

#include <catch2/catch.hpp>

#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

using namespace cellkeep;
using namespace cellkeep::egress;
using nlohmann::json;
using std::chrono::seconds;
using std::chrono::steady_clock;

namespace {

const steady_clock::time_point kNow{seconds(5000)};

UniqueFd any_socket() {
    return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

UniqueFd any_listener() {
    UniqueFd fd = any_socket();
    REQUIRE(::listen(fd.get(), 1) == 0);
    return fd;
}

PassedTunnel any_tunnel() {
    PassedTunnel tunnel;
    tunnel.target = {{"index.example", false}, 443};
    tunnel.address = "192.0.2.1";
    tunnel.server_name = "index.example";
    tunnel.bytes_up = 7;
    tunnel.bytes_down = 8;
    tunnel.began_at = kNow - seconds(9);
    tunnel.up = {std::string("\xff\0x", 3), false};
    tunnel.down = {"", true};
    return tunnel;
}

PassedProxy any_proxy() {
    PassedProxy proxy;
    proxy.listener = any_listener();
    proxy.policy.mode = NetworkMode::kAllowlist;
    proxy.policy.allow = {
        {"index.example", 443, false}, {"cdn.example", 80, true}, {"", 8443, true}};
    proxy.policy.secrets = {
        {"tracker", "TRACKER_TOKEN", {"api.example", 443, false}, "Authorization"}};
    proxy.traffic = {1, 2, 3, 4};
    proxy.requests = {kNow - seconds(50), kNow - seconds(2), kNow};
    proxy.refusals = {kNow - seconds(3)};
    proxy.suppressed = 5;
    proxy.connections.push_back({any_socket(), {}, std::nullopt});
    proxy.connections.push_back({any_socket(), any_socket(), any_tunnel()});
    return proxy;
}

struct Written {
    json text;
    std::vector<UniqueFd> fds;
};

Written write_down(PassedProxy proxy) {
    Written written;
    const json text = write_proxy(proxy, written.fds);
    written.text = json::from_cbor(json::to_cbor(text));
    return written;
}

bool is_refused(Written written) {
    const auto read = read_proxy(written.text, std::move(written.fds), kNow);
    return read.has_error() && read.error().code() == ErrorCode::kProtocol;
}

}  // namespace

TEST_CASE("what passes of a proxy comes as it went", "[egress][passing]") {
    Written written = write_down(any_proxy());
    REQUIRE(written.fds.size() == 4);
    std::vector<int> numbers;
    for (const UniqueFd& fd : written.fds) {
        numbers.push_back(fd.get());
    }
    auto read = read_proxy(written.text, std::move(written.fds), kNow);
    REQUIRE(read.has_value());
    PassedProxy& after = read.value();
    CHECK(after.policy == any_proxy().policy);
    CHECK(after.requests == any_proxy().requests);
    CHECK(after.listener.get() == numbers[0]);
    REQUIRE(after.connections.size() == 2);
    CHECK(after.connections[0].client.get() == numbers[1]);
    CHECK_FALSE(after.connections[0].tunnel);
    CHECK(after.connections[1].host.get() == numbers[3]);
    const PassedTunnel& tunnel = after.connections[1].tunnel.value();
    CHECK(tunnel.target == any_tunnel().target);
    CHECK(tunnel.up.held == std::string("\xff\0x", 3));
    CHECK(tunnel.down.ended);
    std::vector<UniqueFd> fds;
    CHECK(write_proxy(after, fds) == written.text);
}

TEST_CASE("a proxy has no place for a secret's value", "[egress][passing]") {
    const Written written = write_down(any_proxy());
    const json expected = {
        {"name", "tracker"},
        {"variable", "TRACKER_TOKEN"},
        {"host", "api.example:443"},
        {"header", "Authorization"}};
    CHECK(written.text["secrets"] == json::array({expected}));
}

TEST_CASE("as much of a proxy passes as one may have, and not more", "[egress][passing]") {
    const std::size_t more = GENERATE(std::size_t{0}, std::size_t{1});
    PassedProxy proxy = any_proxy();
    SECTION("connections") {
        proxy.connections.clear();
        for (std::size_t i = 0; i < limits::kEgressConnectionsMax + more; ++i) {
            proxy.connections.push_back({any_socket(), {}, std::nullopt});
        }
    }
    SECTION("hosts") {
        proxy.policy.allow.assign(limits::kEgressAllowedHostsMax + more, {"a.example", 443, false});
    }
    SECTION("secrets") {
        const SecretBinding secret = proxy.policy.secrets[0];
        proxy.policy.secrets.assign(limits::kEgressSecretsMax + more, secret);
    }
    SECTION("requests of a minute") {
        proxy.requests.assign(limits::kEgressRequestsPerMinuteMax + more, kNow);
    }
    SECTION("refusals of a minute") {
        proxy.refusals.assign(kRefusalsLoggedPerMinuteMax + more, kNow);
    }
    SECTION("bytes that a tunnel holds") {
        proxy.connections[1].tunnel->up.held.assign(kRelayBytesMax + more, 'x');
    }
    CHECK(is_refused(write_down(std::move(proxy))) == (more == 1));
}

TEST_CASE("what no proxy of ours leaves is refused", "[egress][passing]") {
    Written written = write_down(any_proxy());
    json& text = written.text;
    json& tunnel = text["connections"][1];
    SECTION("no object") {
        text = "proxy";
    }
    SECTION("no list of hosts") {
        text["allow"] = "index.example";
    }
    SECTION("a host that is none") {
        text["allow"][0] = "index.example.";
    }
    SECTION("a host that is a number") {
        text["allow"][0] = 5;
    }
    SECTION("a secret for many hosts") {
        text["secrets"][0]["host"] = "*.api.example";
    }
    SECTION("a secret without a variable") {
        text["secrets"][0].erase("variable");
    }
    SECTION("a secret with a long name") {
        text["secrets"][0]["name"] = std::string(1000, 'n');
    }
    SECTION("a count below zero") {
        text["denied"] = -1;
    }
    SECTION("a count that is a text") {
        text["bytes_up"] = "3";
    }
    SECTION("no count") {
        text.erase("requests");
    }
    SECTION("a request that is to come") {
        text["recent"][2] = to_ticks(kNow + seconds(1));
    }
    SECTION("requests in another order") {
        text["recent"][0] = to_ticks(kNow);
    }
    SECTION("a request at no moment") {
        text["recent"][0] = "now";
    }
    SECTION("refusals that are none") {
        text["refusals"] = json();
    }
    SECTION("connections that are a number") {
        text["connections"] = 2;
    }
    SECTION("a connection that is a number") {
        tunnel = 2;
    }
    SECTION("a tunnel to no host") {
        tunnel["target"] = "index.example";
    }
    SECTION("a tunnel to an address that is none") {
        tunnel["address"] = "0300.0.2.1";
    }
    SECTION("a tunnel with a name that is none") {
        tunnel["server_name"] = "index example";
    }
    SECTION("a tunnel past the host of a secret") {
        tunnel["target"] = "api.example:443";
    }
    SECTION("a tunnel that is to begin") {
        tunnel["began_at"] = to_ticks(kNow + seconds(1));
    }
    SECTION("a tunnel with one way") {
        tunnel.erase("down");
    }
    SECTION("a way that has ended and holds bytes") {
        tunnel["down"]["held"] = "x";
    }
    SECTION("a way that holds a number") {
        tunnel["up"]["held"] = 5;
    }
    SECTION("a way whose end is a number") {
        tunnel["up"]["ended"] = 0;
    }
    SECTION("a descriptor too few") {
        written.fds.pop_back();
    }
    SECTION("no descriptor") {
        written.fds.clear();
    }
    SECTION("a descriptor too many") {
        written.fds.push_back(any_socket());
    }
    SECTION("a listener that does not listen") {
        written.fds[0] = any_socket();
    }
    SECTION("a listener that is a file") {
        written.fds[0] = UniqueFd(::memfd_create("any", MFD_CLOEXEC));
    }
    SECTION("a client that is a file") {
        written.fds[1] = UniqueFd(::memfd_create("any", MFD_CLOEXEC));
    }
    SECTION("a client that listens") {
        written.fds[1] = any_listener();
    }
    SECTION("a host that is another kind of socket") {
        written.fds[3] = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    }
    SECTION("a host that is no stream") {
        written.fds[3] = UniqueFd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    }
    CHECK(is_refused(std::move(written)));
}
