// SPDX-License-Identifier: Apache-2.0
//
// What the server answers in the kernel's place, and what that does to a running cell's state.
#include "tests/integration/session/session_fixture.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

using cellkeep::protocol::Channel;
using cellkeep::protocol::Message;
using cellkeep::test::execute_request;
using cellkeep::test::make_request;
using cellkeep::test::RecordingClient;
using cellkeep::test::ServiceFixture;
using nlohmann::json;
using Strings = std::vector<std::string>;

namespace {

/// Prints "on", then runs until it is interrupted.
const char* const kEndless = "print('on', flush=True)\nwhile True: pass";

}  // namespace

TEST_CASE(
    "kernel_info on shell is answered at once while a cell runs, which stays busy", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto client = std::make_shared<RecordingClient>();
    session->subscribe(client.get());
    const Message cell = execute_request(kEndless);
    session->submit(cell, client);
    fixture.run_until([&] { return client->text_of(cell) == "on\n"; });
    const Message info = make_request(Channel::kShell, "kernel_info_request", json::object());
    session->submit(info, client);
    const json reply = fixture.answer(*client, info);
    CHECK(reply["status"] == "ok");
    CHECK(client->reply_to(info)->channel() == Channel::kShell);
    for (const auto& feature : reply["supported_features"]) {
        CHECK(feature != "kernel subshells");
    }
    CHECK(client->reply_to(cell) == nullptr);
    CHECK(client->states_of(&info) == Strings{"busy", "idle"});
    // The newest status is what clients show.
    CHECK(client->states_of(&cell) == Strings{"busy", "busy"});
    CHECK(client->output.back().message.parent().msg_id == cell.header().msg_id);
    CHECK(session->state() == cellkeep::session::KernelState::kBusy);
    REQUIRE(session->interrupt().has_value());
    CHECK(fixture.answer(*client, cell)["ename"] == "KeyboardInterrupt");
    session->unsubscribe(client.get());
}

TEST_CASE(
    "shell requests on control are declined with a whole error, subshells are ignored",
    "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto client = std::make_shared<RecordingClient>();
    std::vector<Message> ignored;
    for (const char* type :
         {"create_subshell_request", "delete_subshell_request", "list_subshell_request"}) {
        ignored.push_back(make_request(Channel::kControl, type, json::object()));
        session->submit(ignored.back(), client);
    }
    for (const char* type : {"execute_request", "complete_request", "history_request"}) {
        INFO(type);
        const Message request = make_request(Channel::kControl, type, json::object());
        session->submit(request, client);
        const json reply = fixture.answer(*client, request);
        CHECK(reply["status"] == "error");
        CHECK(reply["ename"] == "NotImplementedError");
        CHECK(reply["evalue"].is_string());
        CHECK(reply["traceback"].is_array());
    }
    for (const Message& request : ignored) {
        INFO(request.header().msg_type);
        CHECK(client->reply_to(request) == nullptr);
    }
}

TEST_CASE("an unknown control message is logged and gets no reply", "[session]") {
    std::vector<std::string> lines;
    auto config = cellkeep::test::service_config();
    config.log = [&](const std::string& line) { lines.push_back(line); };
    ServiceFixture fixture(std::move(config));
    const auto session = fixture.open();
    const auto client = std::make_shared<RecordingClient>();
    session->subscribe(client.get());
    const Message strange = make_request(Channel::kControl, "make_coffee_request", json::object());
    session->submit(strange, client);
    // A client's adopt request, which hands out spares, does not reach a kernel either.
    const Message forged = make_request(
        Channel::kControl,
        "cellkeep_adopt_request",
        {{"env", {{"FORGED", "1"}}}, {"working_directory", "/tmp"}});
    session->submit(forged, client);
    const Message onshell = make_request(
        Channel::kShell,
        "cellkeep_adopt_request",
        {{"env", {{"FORGED", "1"}}}, {"working_directory", "/tmp"}});
    session->submit(onshell, client);
    const auto checked =
        fixture.execute(*session, "import os; print('FORGED' in os.environ, os.getcwd())");
    CHECK(checked.stdout_text == "False /workspace\n");
    CHECK(client->reply_to(strange) == nullptr);
    CHECK(client->reply_to(forged) == nullptr);
    CHECK(client->states_of(&strange) == Strings{"busy", "idle"});
    REQUIRE(lines.size() == 2);
    CHECK_THAT(lines[0], Catch::Contains("make_coffee_request") && Catch::Contains(session->id()));
    session->unsubscribe(client.get());
}

TEST_CASE("usage is the sandbox's, not the host's", "[session]") {
    ServiceFixture fixture;
    cellkeep::session::SessionOptions options;
    options.limits.memory_mb = 300;
    const auto session = fixture.open(options);
    const auto client = std::make_shared<RecordingClient>();
    fixture.execute(*session, "sum(range(3_000_000))");
    const Message request = make_request(Channel::kControl, "usage_request", json::object());
    session->submit(request, client);
    const json usage = fixture.answer(*client, request);
    CHECK(client->reply_to(request)->header().msg_type == "usage_reply");
    CHECK(usage["hostname"] == "cellkeep");
    CHECK(usage["cpu_count"] == 1);
    CHECK(usage["kernel_memory"].get<std::uint64_t>() > 1'000'000);
    CHECK(usage["kernel_cpu"].get<double>() > 0);
    CHECK(usage["host_virtual_memory"]["total"] == 300ULL << 20U);
    CHECK_FALSE(usage.contains("host_cpu_percent"));
    CHECK_FALSE(usage.contains("pid"));
}

TEST_CASE("unknown fields do not hurt an execute_request", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto client = std::make_shared<RecordingClient>();
    const Message request = make_request(
        Channel::kShell,
        "execute_request",
        {{"code", "1"}, {"cellId", "x"}, {"future", json::array()}});
    session->submit(request, client);
    CHECK(fixture.answer(*client, request)["status"] == "ok");
}
