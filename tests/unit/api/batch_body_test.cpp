// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/batch_body.hpp"

#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::api {
namespace {

using nlohmann::json;

const Offer kOffer{{"python", "sql"}, {}};

BatchOrder parse(const json& body, FieldErrors& errors) {
    return parse_batch_order(body, kOffer, errors);
}

json item_with(const char* name, json value) {
    return {{"items", json::array({{{"code", "1"}, {name, std::move(value)}}})}};
}

json order_with(const char* name, json value) {
    return {{"items", json::array({{{"code", "1"}}})}, {name, std::move(value)}};
}

TEST_CASE("an order for a batch has items, and defaults for the rest", "[agent][body]") {
    FieldErrors errors;
    const BatchOrder plain = parse(order_with("concurrency", 1U), errors);
    CHECK_FALSE(plain.from.has_value());
    CHECK(plain.options.language == "python");
    REQUIRE(plain.items.size() == 1);
    CHECK(plain.items[0].request.code == "1");
    CHECK(plain.items[0].has_code);
    CHECK(plain.stop_on == BatchOrder::StopOn::kNever);
    CHECK(plain.keep == BatchOrder::Keep::kNone);
    CHECK_FALSE(plain.wall_budget.has_value());
    CHECK_FALSE(plain.interrupt_on_disconnect);
    CHECK(parse(item_with("label", "a"), errors).concurrency == kBatchConcurrencyDefault);
    CHECK(errors.empty());
}

TEST_CASE("an order for a batch says from what, what and how far", "[agent][body]") {
    FieldErrors errors;
    const BatchOrder order = parse(
        {{"from", {{"session", "ses_1"}, {"checkpoint", "ckp_1"}, {"reseed", false}}},
         {"code", "import sys"},
         {"items",
          {{{"stdin", "a"}, {"label", "one"}, {"timeout_ms", 5U}},
           {{"code", "2"}, {"language", "sql"}, {"files", {{{"path", "f"}, {"text", "x"}}}}}}},
         {"concurrency", kBatchConcurrencyMax},
         {"stop_on", "first_error"},
         {"keep", "all"},
         {"budget", {{"wall_ms", 60000U}}},
         {"on_disconnect", "interrupt"}},
        errors);
    REQUIRE(errors.empty());
    REQUIRE(order.from.has_value());
    CHECK(order.from->session == "ses_1");
    CHECK(order.from->checkpoint == "ckp_1");
    CHECK_FALSE(order.from->reseed);
    CHECK(order.code == "import sys");
    REQUIRE(order.items.size() == 2);
    CHECK_FALSE(order.items[0].has_code);
    CHECK(order.items[0].request.stdin_text == "a");
    CHECK(order.items[0].label == "one");
    CHECK(order.items[1].has_code);
    CHECK(order.items[1].request.language == "sql");
    CHECK(order.items[1].request.files.size() == 1);
    CHECK(order.concurrency == kBatchConcurrencyMax);
    CHECK(order.stop_on == BatchOrder::StopOn::kFirstError);
    CHECK(order.keep == BatchOrder::Keep::kAll);
    CHECK(order.wall_budget == std::chrono::milliseconds(60000));
    CHECK(order.interrupt_on_disconnect);
    const BatchOrder fresh = parse(
        {{"session", {{"language", "sql"}, {"env", {{"A", "1"}}}}},
         {"code", "1"},
         {"items", {{{"env", {{"B", "2"}}}}}},
         {"stop_on", "first_success"},
         {"keep", "winner"}},
        errors);
    REQUIRE(errors.empty());
    CHECK(fresh.options.language == "sql");
    CHECK(fresh.items[0].env.at("B") == "2");
    CHECK(fresh.keep == BatchOrder::Keep::kWinner);
}

TEST_CASE("a batch has at most kBatchItemsMax items", "[agent][body]") {
    json body = {{"code", "1"}, {"items", json::array()}};
    for (std::size_t i = 0; i < kBatchItemsMax; ++i) {
        body["items"].push_back(json::object());
    }
    FieldErrors errors;
    CHECK(parse(body, errors).items.size() == kBatchItemsMax);
    CHECK(errors.empty());
    body["items"].push_back(json::object());
    CHECK(parse(body, errors).items.empty());
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].pointer == "/items");
}

TEST_CASE("many wrong items make a short answer", "[agent][body]") {
    json body = {{"items", json::array()}};
    for (std::size_t i = 0; i < kBatchItemsMax; ++i) {
        body["items"].push_back(json::object());
    }
    FieldErrors errors;
    (void)parse(body, errors);
    CHECK(errors.size() <= 64);
    CHECK(errors.front().pointer == "/items/0/code");
}

TEST_CASE("wrong orders for a batch are refused field by field", "[agent][body]") {
    const std::string long_label(limits::kCheckpointLabelBytesMax + 1, 'x');
    const auto [body, pointer] = GENERATE_COPY(table<json, std::string>({
        {json::array(), ""},
        {json::object(), "/items"},
        {{{"items", json::array()}}, "/items"},
        {{{"items", "1"}}, "/items"},
        {{{"items", json::array({"1"})}}, "/items/0"},
        {{{"items", json::array({json::object()})}}, "/items/0/code"},
        {{{"code", 1}, {"items", json::array({json::object()})}}, "/code"},
        {item_with("timeout_ms", 0), "/items/0/timeout_ms"},
        {item_with("language", "cobol"), "/items/0/language"},
        {item_with("files", json::array({{{"path", "/f"}, {"text", ""}}})),
         "/items/0/files/0/path"},
        {item_with("label", ""), "/items/0/label"},
        {item_with("label", long_label), "/items/0/label"},
        {item_with("label", 1), "/items/0/label"},
        {item_with("env", {{"1A", "x"}}), "/items/0/env/1A"},
        {item_with("idempotency_key", "k"), "/items/0/idempotency_key"},
        {item_with("tools", json::array()), "/items/0/tools"},
        {item_with("outputs", true), "/items/0/outputs"},
        {item_with("on_disconnect", "interrupt"), "/items/0/on_disconnect"},
        {item_with("priority", 1), "/items/0/priority"},
        {order_with("from", "ckp_1"), "/from"},
        {order_with("from", json::object()), "/from/session"},
        {order_with("from", {{"session", 1}}), "/from/session"},
        {order_with("from", {{"session", std::string(65, 'x')}}), "/from/session"},
        {order_with("from", {{"session", "s"}, {"checkpoint", 1}}), "/from/checkpoint"},
        {order_with("from", {{"session", "s"}, {"on_threads", "keep"}}), "/from/on_threads"},
        {order_with("from", {{"session", "s"}, {"checkpoint", "c"}, {"on_threads", "drop"}}),
         "/from/on_threads"},
        {order_with("from", {{"session", "s"}, {"reseed", 1}}), "/from/reseed"},
        {order_with("from", {{"session", "s"}, {"label", "x"}}), "/from/label"},
        {order_with("session", {{"language", "cobol"}}), "/session/language"},
        {order_with("session", {{"limits", {{"memory_mb", 0}}}}), "/session/limits/memory_mb"},
        {order_with("session", json::array()), "/session"},
        {order_with("concurrency", 0), "/concurrency"},
        {order_with("concurrency", kBatchConcurrencyMax + 1), "/concurrency"},
        {order_with("concurrency", "4"), "/concurrency"},
        {order_with("stop_on", "first"), "/stop_on"},
        {order_with("stop_on", 1), "/stop_on"},
        {order_with("keep", "best"), "/keep"},
        {order_with("on_disconnect", "stop"), "/on_disconnect"},
        {order_with("budget", 5), "/budget"},
        {order_with("budget", {{"wall_ms", 0}}), "/budget/wall_ms"},
        {order_with("budget", {{"cpu_ms", 5}}), "/budget/cpu_ms"},
        {order_with("labels", json::array()), "/labels"},
    }));
    INFO(body.dump());
    FieldErrors errors;
    (void)parse(body, errors);
    REQUIRE_FALSE(errors.empty());
    CHECK(errors.front().pointer == pointer);
}

TEST_CASE("what is of fresh sessions is not for branches", "[agent][body]") {
    json body = item_with("env", {{"A", "1"}});
    body["from"] = {{"session", "ses_1"}};
    FieldErrors errors;
    (void)parse(body, errors);
    REQUIRE_FALSE(errors.empty());
    CHECK(errors.front().pointer == "/items/0/env");
    errors.clear();
    body = order_with("session", json::object());
    body["from"] = {{"session", "ses_1"}};
    (void)parse(body, errors);
    REQUIRE_FALSE(errors.empty());
    CHECK(errors.front().pointer == "/session");
}

}  // namespace
}  // namespace cellkeep::api
