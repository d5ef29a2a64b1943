// SPDX-License-Identifier: Apache-2.0
//
// What one program writes of its ZeroMQ sockets, and the next one reads or refuses.
#include "kernel-manager/jupyter/zmq/passed_zmq.hpp"
#include "protocol/limits.hpp"
#include "protocol/signer.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace cellkeep;
using namespace cellkeep::jupyter;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

constexpr const char* kId = "ses_0123456789abcdef01234567";

protocol::Message any_request(protocol::Channel channel) {
    return protocol::Message::make(
        channel,
        protocol::make_header("execute_request", "s", "u"),
        json::object(),
        {{"code", "1"}});
}

PassedZmq make_passed() {
    PassedZmq passed;
    passed.socket_directory = "/run/ck-1-abc";
    passed.watch = 0;
    PassedZmqSession& session = passed.sessions[kId];
    session.connection.ip = std::string("/run/ck-1-abc/") + kId;
    session.connection.key = "key";
    session.connection.kernel_name = "python";
    session.connection.shell_port = 1;
    session.connection.iopub_port = 2;
    session.connection.stdin_port = 3;
    session.connection.control_port = 4;
    session.connection.hb_port = 5;
    session.bound = true;
    session.subscriptions = 2;
    session.requests.push_back({{std::string("a\0b", 3)}, any_request(protocol::Channel::kShell)});
    return passed;
}

json as_read(const PassedZmq& passed) {
    return json::from_cbor(json::to_cbor(write_zmq(passed)));
}

void with_connection(json& session, const std::string& name, const json& value) {
    json connection = json::parse(session["connection"].get<std::string>());
    connection[name] = value;
    session["connection"] = connection.dump();
}

}  // namespace

TEST_CASE("what passes of ZeroMQ sockets is what was written", "[jupyter][passing]") {
    const PassedZmq before = make_passed();
    const auto read = read_zmq(as_read(before));
    REQUIRE(read.has_value());
    const PassedZmq& after = read.value();
    CHECK(after.socket_directory == before.socket_directory);
    CHECK(after.watch == before.watch);
    REQUIRE(after.sessions.size() == 1);
    const PassedZmqSession& session = after.sessions.at(kId);
    const PassedZmqSession& written = before.sessions.at(kId);
    CHECK(protocol::to_json_text(session.connection) == to_json_text(written.connection));
    CHECK(session.bound);
    CHECK(session.subscriptions == 2);
    REQUIRE(session.requests.size() == 1);
    CHECK(session.requests[0].identities == written.requests[0].identities);
    CHECK(session.requests[0].message.frame() == written.requests[0].message.frame());
    CHECK(session.seen.empty());
}

TEST_CASE("a front without sessions or a watch passes, too", "[jupyter][passing]") {
    const auto read = read_zmq(as_read({}));
    REQUIRE(read.has_value());
    CHECK(read.value().sessions.empty());
    CHECK_FALSE(read.value().watch.has_value());
}

TEST_CASE("as many requests pass as may be there, and not one more", "[jupyter][passing]") {
    PassedZmq passed = make_passed();
    auto& requests = passed.sessions.at(kId).requests;
    requests.assign(kPassedRequestsMax, requests.front());
    CHECK(read_zmq(as_read(passed)).has_value());
    requests.push_back(requests.front());
    CHECK(read_zmq(as_read(passed)).error().code() == ErrorCode::kProtocol);
}

TEST_CASE("sockets of tcp pass with the loopback address alone", "[jupyter][passing]") {
    json text = as_read(make_passed());
    json& session = text["sessions"][kId];
    with_connection(session, "transport", "tcp");
    with_connection(session, "ip", "127.0.0.1");
    CHECK(read_zmq(text).has_value());
    with_connection(session, "ip", "0.0.0.0");
    CHECK_THAT(read_zmq(text).error().message(), Contains("none of this server's"));
}

TEST_CASE("what another form has passes not", "[jupyter][passing]") {
    json text = as_read(make_passed());
    json& session = text["sessions"][kId];
    SECTION("no object") {
        text = json::array();
    }
    SECTION("nothing") {
        text = json();
    }
    SECTION("no socket directory") {
        text.erase("socket_directory");
    }
    SECTION("a watch that is no number") {
        text["watch"] = "0";
    }
    SECTION("a session that is no object") {
        session = 5;
    }
    SECTION("no connection") {
        session.erase("connection");
    }
    SECTION("a connection that is no text") {
        session["connection"] = 5;
    }
    SECTION("a connection that is no JSON") {
        session["connection"] = "{";
    }
    SECTION("no key") {
        with_connection(session, "key", "");
    }
    SECTION("an unknown signature scheme") {
        with_connection(session, "signature_scheme", "hmac-none");
    }
    SECTION("one port for two sockets") {
        with_connection(session, "hb_port", 1);
    }
    SECTION("sockets elsewhere") {
        with_connection(session, "ip", "/tmp/elsewhere");
    }
    SECTION("sockets beneath the directory") {
        with_connection(session, "ip", "/run/ck-1-abc/x/../../y");
    }
    SECTION("a path that is too long") {
        with_connection(session, "ip", "/run/ck-1-abc/" + std::string(107, 'x'));
    }
    SECTION("nobody knows whether it is bound") {
        session["bound"] = 1;
    }
    SECTION("a negative number of subscriptions") {
        session["subscriptions"] = -1;
    }
    SECTION("subscriptions that are no number") {
        session["subscriptions"] = "2";
    }
    SECTION("requests that are no list") {
        session["requests"] = json::object();
    }
    SECTION("a request without identities") {
        session["requests"][0].erase("identities");
    }
    SECTION("a request of nobody") {
        session["requests"][0]["identities"] = json::array();
    }
    SECTION("more identities than a message has frames") {
        session["requests"][0]["identities"] =
            std::vector<std::string>(limits::kZmqFramesMax + 1, "a");
    }
    SECTION("a request that is no message") {
        session["requests"][0]["frame"] = "hello";
    }
    SECTION("a request on iopub") {
        session["requests"][0]["frame"] =
            std::string(any_request(protocol::Channel::kIopub).frame());
    }
    SECTION("requests to sockets that were never there") {
        session["bound"] = false;
    }
    SECTION("signatures that are cut off") {
        session["seen"] = "0123456789";
    }
    SECTION("more signatures than are remembered") {
        session["seen"] = std::string(16 * (limits::kReplayHistoryMax + 1), 'x');
    }
    SECTION("no signatures") {
        session.erase("seen");
    }
    CHECK(read_zmq(text).has_error());
}

TEST_CASE("a signer goes on with what another one has seen", "[jupyter][passing]") {
    const auto make = [] { return protocol::Signer::create("hmac-sha256", "key").value(); };
    protocol::Signer first = make();
    const auto message = any_request(protocol::Channel::kShell);
    const std::string signature = first.sign(
        message.header_json(),
        message.parent_header_json(),
        message.metadata_json(),
        message.content_json());
    const auto frames = first.frames(message, signature);
    REQUIRE(first.open(protocol::Channel::kShell, frames).has_value());
    protocol::Signer control = make();
    CHECK(control.open(protocol::Channel::kShell, frames).has_value());
    protocol::Signer second = make();
    REQUIRE(second.go_on(first.pass_on()).has_value());
    CHECK(second.pass_on() == first.pass_on());
    CHECK(first.passed_bytes() == first.pass_on().size());
    CHECK(make().passed_bytes() == 0);
    const auto again = second.open(protocol::Channel::kShell, frames);
    CHECK_THAT(again.error().message(), Contains("seen before"));
    // The bound is that of one signer.
    CHECK(make().go_on(std::string(16 * limits::kReplayHistoryMax, 'x')).has_value());
    CHECK(make().go_on("x").error().code() == ErrorCode::kProtocol);
}
