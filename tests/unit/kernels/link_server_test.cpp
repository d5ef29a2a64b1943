// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/link_server.hpp"

#include "kernels/common/history.hpp"
#include "tests/unit/kernels/link_pair.hpp"

#include <xeus/xkernel.hpp>

#include <iostream>
#include <stdexcept>
#include <thread>

namespace cellkeep::kernels {

using nlohmann::json;
using protocol::Channel;

namespace {

/// A language in which everything fails.
class Failing final : public Interpreter {
 public:
    using Interpreter::Interpreter;

 private:
    Reply execute(const ExecuteRequest& request, int count) override {
        if (request.code == "xeus input") {
            input_request("Key", true);
            publish_execution_result(count, {{"text/plain", "1"}}, json::object());
            return {{{"status", "ok"}}, json::object()};
        }
        throw std::runtime_error("execute failed");
    }
    json complete_request_impl(const std::string& /*code*/, int /*cursor*/) override {
        throw std::runtime_error("complete failed");
    }
    json inspect_request_impl(
        const std::string& /*code*/, int /*cursor*/, int /*detail*/) override {
        throw std::runtime_error("inspect failed");
    }
    json is_complete_request_impl(const std::string& /*code*/) override {
        throw std::runtime_error("is_complete failed");
    }
    json kernel_info_request_impl() override { return json::object(); }
    void shutdown_request_impl() override {}
};

/// Serves the requests, then reads all messages until the last idle.
std::vector<protocol::Message> serve(
    LinkPair& pair, const std::vector<std::pair<std::string, json>>& requests) {
    for (const auto& [type, content] : requests) {
        (void)pair.send(Channel::kShell, type, content);
    }
    (void)pair.send(Channel::kControl, "shutdown_request", json::object());

    OutputBuffer output(pair.outbox);
    const KernelParts parts{pair.kernel, pair.inbox, pair.outbox, output};
    auto interpreter = std::make_unique<Failing>(parts);
    Status outcome = ok();
    ServerParts server{parts, interpreter.get(), &outcome, std::clog.rdbuf(nullptr)};
    auto history = make_history(*interpreter);
    xeus::xkernel kernel(
        "kernel",
        std::make_unique<xeus::xcontext_impl<ServerParts>>(server),
        std::move(interpreter),
        make_link_server,
        std::move(history));
    std::streambuf* errors = std::cerr.rdbuf(nullptr);  // xeus reports what it swallows there
    kernel.start();
    std::cerr.rdbuf(errors);
    REQUIRE(outcome);
    std::vector<protocol::Message> sent;
    while (sent.empty() || sent.back().header().msg_type != "shutdown_reply") {
        sent.push_back(pair.sent());
    }
    return sent;
}

json reply(const std::vector<protocol::Message>& messages, std::string_view type) {
    for (const protocol::Message& message : messages) {
        if (message.header().msg_type == type) {
            return message.parse_content().value();
        }
    }
    return nullptr;
}

}  // namespace

TEST_CASE("an interpreter that throws still answers every request, once", "[kernels][server]") {
    LinkPair pair;
    const std::vector<std::pair<std::string, json>> requests{
        {"execute_request", {{"code", "1"}}},
        {"complete_request", {{"code", "1"}, {"cursor_pos", 1}}},
        {"inspect_request", {{"code", "1"}, {"cursor_pos", 1}}},
        {"is_complete_request", {{"code", "1"}}}};
    const auto sent = serve(pair, requests);
    for (const auto& [type, content] : requests) {
        const std::string expected = type.substr(0, type.rfind('_')) + "_reply";
        CAPTURE(expected);
        const json answer = reply(sent, expected);
        REQUIRE(answer.is_object());
        CHECK(answer["status"] == "error");
        CHECK(answer["ename"] == "KernelError");
    }
    CHECK(reply(sent, "execute_reply")["execution_count"] == 1);
    CHECK(reply(sent, "shutdown_reply") == json{{"status", "ok"}, {"restart", false}});
    std::size_t idle = 0;
    for (const auto& message : sent) {
        idle += message.header().msg_type == "status" &&
                        message.parse_content().value()["execution_state"] == "idle"
                    ? 1U
                    : 0U;
    }
    CHECK(idle == requests.size());
}

TEST_CASE("a language without comms or history answers all the same", "[kernels][server]") {
    LinkPair pair;
    const auto sent = serve(
        pair,
        {{"comm_open", {{"comm_id", "c"}, {"target_name", "t"}, {"data", json::object()}}},
         {"comm_msg", {{"comm_id", "c"}, {"data", json::object()}}},
         {"comm_info_request", json::object()},
         {"history_request", {{"hist_access_type", "tail"}}}});
    CHECK(reply(sent, "comm_close")["comm_id"] == "c");
    CHECK(reply(sent, "comm_info_reply")["comms"] == json::object());
    CHECK(reply(sent, "history_reply")["history"] == json::array());
}

TEST_CASE("what an interpreter sends by xeus's own functions is put right", "[kernels][server]") {
    LinkPair pair;
    const auto sent = serve(pair, {{"execute_request", {{"code", "xeus input"}}}});
    CHECK(reply(sent, "input_request") == json{{"prompt", "Key"}, {"password", true}});
    CHECK(reply(sent, "execute_result")["data"]["text/plain"] == "1");
    CHECK(reply(sent, "execute_input")["execution_count"] == 1);
    for (const auto& message : sent) {
        CHECK(message.header().version == "5.5");
        CHECK(message.header().session == "session");
    }
}

}  // namespace cellkeep::kernels
