// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/control/idempotency.hpp"
#include "kernel-manager/e2b/control/sandbox_order.hpp"
#include "kernel-manager/e2b/control/sandbox_page.hpp"
#include "kernel-manager/e2b/limits.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace cellkeep::e2b {
namespace {

egress::AllowedHost host_of_text(const char* text) {
    auto host = egress::parse_allowed_host(text);
    REQUIRE(host.has_value());
    return host.value();
}

Offer test_offer() {
    return {{"python", "bash"}, {}, {host_of_text("*.example.org:443")}};
}

Result<SandboxOrder> order_of(const char* body) {
    return parse_sandbox_order(nlohmann::json::parse(body), test_offer());
}

TEST_CASE("a sandbox is a session with a template and an end", "[e2b][order]") {
    const auto order = order_of(
        R"({"templateID":"code-interpreter-v1","timeout":60,"metadata":{"a":"b"},
            "envVars":{"X":"1"},"autoPause":true,"autoResume":{"enabled":true},"future":1})");
    REQUIRE(order.has_value());
    CHECK(order.value().options.language == "python");
    CHECK(order.value().options.metadata == nlohmann::json({{"a", "b"}}));
    CHECK(order.value().options.env.at("X") == "1");
    CHECK(order.value().options.env.at("HOME") == "/home/user");
    CHECK(order.value().timeout == std::chrono::seconds(60));
    CHECK(order.value().record.pause_at_end);
    CHECK(order.value().record.resume_on_use);
    CHECK(order.value().options.network.allow == test_offer().reachable);
    CHECK(order_of(R"({"templateID":"bash:latest"})").value().options.language == "bash");
    CHECK(order_of(R"({"templateID":"base"})").value().timeout == kTimeoutDefault);
    CHECK(order.value().names_variables);
    CHECK_FALSE(order_of(R"({"templateID":"base"})").value().names_variables);
}

TEST_CASE("sandboxes of Python can be copied where the operator says so", "[e2b][order]") {
    Offer offer = test_offer();
    const auto branches = [&offer](const char* name) {
        const nlohmann::json body = {{"templateID", name}};
        return parse_sandbox_order(body, offer).value().options.branches;
    };
    CHECK_FALSE(branches("base"));
    offer.snapshots = true;
    CHECK(branches("base"));
    CHECK(branches("python"));
    CHECK_FALSE(branches("bash"));
}

TEST_CASE("orders that cannot be filled are refused", "[e2b][order]") {
    for (const char* wrong :
         {R"([])",
          R"({"templateID":7})",
          R"({"templateID":"base","timeout":-1})",
          R"({"templateID":"base","timeout":"60"})",
          R"({"templateID":"base","timeout":99999999})",
          R"({"templateID":"base","metadata":{"a":1}})",
          R"({"templateID":"base","envVars":[]})",
          R"({"templateID":"base","autoPause":1})",
          R"({"templateID":"base","network":[]})",
          R"({"templateID":"base","network":{"allowOut":[7]}})",
          R"({"templateID":"base","network":{"allowOut":["elsewhere.test"]}})",
          R"({"templateID":"base","network":{"allowOut":["10.0.0.0/8"]}})"}) {
        CAPTURE(wrong);
        REQUIRE(order_of(wrong).has_error());
        CHECK(order_of(wrong).error().code() == ErrorCode::kInvalidArgument);
    }
    for (const char* missing :
         {R"({"templateID":"base","volumeMounts":[{"name":"a","path":"/b"}]})",
          R"({"templateID":"base","mcp":{"x":{}}})",
          R"({"templateID":"base","iam":{"tokens":{}}})",
          R"({"templateID":"base","network":{"egressProxy":"x"}})",
          R"({"templateID":"base","network":{"denyOut":["10.0.0.0/8"]}})"}) {
        CAPTURE(missing);
        REQUIRE(order_of(missing).has_error());
        CHECK(order_of(missing).error().code() == ErrorCode::kUnavailable);
    }
    // It may be a snapshot.
    CHECK(order_of(R"({"templateID":"mine"})").value().options.language.empty());
    CHECK(no_template("mine", {"bash"}).code() == ErrorCode::kNotFound);
}

TEST_CASE("the network is what the operator allows, or less", "[e2b][order]") {
    const auto network = [](const char* body) {
        auto policy = parse_network(nlohmann::json::parse(body), test_offer());
        REQUIRE(policy.has_value());
        return policy.value();
    };
    CHECK(network(R"({})").allow.size() == 1);
    CHECK(network(R"({"allow_internet_access":false})").mode == egress::NetworkMode::kNone);
    const auto named =
        network(R"({"network":{"allowOut":["api.example.org"],"denyOut":["0.0.0.0/0"]}})");
    CHECK(named.allow == std::vector<egress::AllowedHost>{host_of_text("api.example.org:443")});
    CHECK(network(R"({"network":{"denyOut":["0.0.0.0/0"]}})").mode == egress::NetworkMode::kNone);
}

ListedSandbox listed(int number, const char* label) {
    ListedSandbox one;
    one.info.id = "ses_" + std::string(23, '0') + std::to_string(number);
    one.info.created_at = std::chrono::system_clock::time_point(std::chrono::seconds(number));
    one.info.metadata = {{"label", label}};
    return one;
}

Result<PageQuery> query_of(const std::string& query) {
    const auto target = http::parse_target("/v2/sandboxes?" + query);
    REQUIRE(target.has_value());
    return parse_page_query(target.value());
}

TEST_CASE("the network alone is read as it is within an order", "[e2b][order]") {
    const auto allowed = [](const char* body) {
        auto policy = parse_network_body(nlohmann::json::parse(body), test_offer());
        REQUIRE(policy.has_value());
        return policy.value().allow.size();
    };
    CHECK(allowed(R"({})") == 1);
    CHECK(allowed(R"({"allowOut":["a.example.org"]})") == 1);
    CHECK(allowed(R"({"allow_internet_access":false})") == 0);
    for (const char* wrong :
         {R"([])", R"({"allowOut":[7]})", R"({"allowOut":["elsewhere.test"]})"}) {
        CAPTURE(wrong);
        CHECK(parse_network_body(nlohmann::json::parse(wrong), test_offer()).has_error());
    }
}

TEST_CASE("a pause keeps the memory unless the client says otherwise", "[e2b][order]") {
    const auto pause = [](const char* body) { return parse_pause(nlohmann::json::parse(body)); };
    CHECK(pause("{}").value());
    CHECK(pause(R"({"memory":true})").value());
    CHECK_FALSE(pause(R"({"memory":false})").value());
    for (const char* wrong : {"[]", R"({"memory":1})", R"({"memory":"no"})"}) {
        CAPTURE(wrong);
        CHECK(pause(wrong).error().code() == ErrorCode::kInvalidArgument);
    }
}

TEST_CASE("orders are told apart by what they ask for, not by how", "[e2b][order]") {
    const auto digest = [](const char* body) { return order_of(body).value().digest; };
    const std::string one = digest(R"({"templateID":"base","timeout":60})");
    CHECK(digest(R"({ "timeout": 60, "templateID": "base" })") == one);
    CHECK(digest(R"({"templateID":"base","timeout":61})") != one);
    CHECK(digest(R"({"templateID":"base"})") != one);
}

TEST_CASE("pages follow one another, whatever went meanwhile", "[e2b][page]") {
    const std::vector<ListedSandbox> all = {listed(1, "a"), listed(2, "a"), listed(3, "a")};
    auto query = query_of("limit=2").value();
    const Page first = take_page(query, all);
    REQUIRE(first.sandboxes.size() == 2);
    CHECK(first.sandboxes.front().info.id == all[2].info.id);
    query = query_of("limit=2&nextToken=" + first.next).value();
    CHECK(take_page(query, all).sandboxes.front().info.id == all[0].info.id);
    CHECK(take_page(query, all).next.empty());
    // The one that the page begins behind has gone.
    CHECK(take_page(query, {all[0], all[2]}).sandboxes.size() == 1);
    query = query_of("order=asc").value();
    CHECK(take_page(query, all).sandboxes.front().info.id == all[0].info.id);
}

TEST_CASE("a list is of what was asked for", "[e2b][page]") {
    const auto matching = [](const std::string& text, State state) {
        ListedSandbox one = listed(1, "a b&c");
        one.state = state;
        one.record.template_id = "base";
        return matches(query_of(text).value(), one);
    };
    CHECK(matching("metadata=label%3Da%252520b%252526c", State::kRunning));
    CHECK_FALSE(matching("metadata=label%3Dother", State::kRunning));
    CHECK_FALSE(matching("metadata=other%3Da", State::kRunning));
    CHECK(matching("state=paused", State::kPaused));
    CHECK_FALSE(matching("state=paused", State::kRunning));
    CHECK(matching("state=running%2Cpaused", State::kRunning));
    CHECK(matching("template=base", State::kRunning));
    CHECK_FALSE(matching("template=mine", State::kRunning));
    for (const char* wrong :
         {"limit=0",
          "limit=101",
          "limit=x",
          "limit=-1",
          "order=up",
          "state=dead",
          "nextToken=x",
          "nextToken=1-ses_1",
          "nextToken=-ses_000000000000000000000000",
          "metadata=%25zz"}) {
        CAPTURE(wrong);
        CHECK(query_of(wrong).has_error());
    }
    CHECK(query_of("limit=100").has_value());
}

TEST_CASE("a key is remembered until too many came after it", "[e2b][idempotency]") {
    Idempotency keys(2);
    keys.begin("a", "request");
    REQUIRE(keys.find("a") != nullptr);
    CHECK(keys.find("a")->session_id.empty());
    keys.finish("a", "ses_1");
    CHECK(keys.find("a")->session_id == "ses_1");
    keys.begin("b", "request");
    keys.begin("c", "request");
    CHECK(keys.find("a") == nullptr);
    CHECK(keys.find("b") != nullptr);
    keys.forget("b");
    CHECK(keys.find("b") == nullptr);
    CHECK(Idempotency::is_key("a-1"));
    CHECK(Idempotency::is_key(std::string(kIdempotencyKeyBytesMax, 'a')));
    for (const std::string& wrong :
         {std::string(),
          std::string("A"),
          std::string("a b"),
          std::string("a\n"),
          std::string(kIdempotencyKeyBytesMax + 1, 'a')}) {
        CHECK_FALSE(Idempotency::is_key(wrong));
    }
}

TEST_CASE("the clients learn where ports of sandboxes are", "[e2b][answer]") {
    const auto domain = [](const char* host) {
        http::Request request;
        request.headers.add("Host", host);
        return domain_of(request);
    };
    CHECK(domain("127.0.0.1:8888") == "localhost:8888");
    CHECK(domain("[::1]:8888") == "localhost:8888");
    CHECK(domain("localhost:8888") == "localhost:8888");
    CHECK(domain("lab.example") == "lab.example");
    CHECK(domain("api.lab.example:443") == "lab.example:443");
    CHECK(domain("API.lab.example") == "lab.example");
    CHECK(domain("apis.example") == "apis.example");
    for (const char* wrong : {"", "api.", ":8888", "a b", "[::1", "x:y"}) {
        CAPTURE(wrong);
        CHECK(domain(wrong) == "localhost");
    }
}

}  // namespace
}  // namespace cellkeep::e2b
