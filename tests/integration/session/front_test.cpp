// SPDX-License-Identifier: Apache-2.0
//
// What a Jupyter front end relies on, without a socket in between.
#include "protocol/limits.hpp"
#include "tests/integration/session/session_fixture.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <vector>

using cellkeep::protocol::Channel;
using cellkeep::protocol::Message;
using cellkeep::session::Death;
using cellkeep::session::Session;
using cellkeep::test::execute_request;
using cellkeep::test::make_request;
using cellkeep::test::RecordingClient;
using cellkeep::test::ServiceFixture;
using nlohmann::json;

namespace {

/// Waits for the reply; returns its content.
json answer(ServiceFixture& fixture, RecordingClient& client, const Message& request) {
    fixture.run_until([&] { return client.reply_to(request) != nullptr; });
    return client.reply_to(request)->parse_content().value();
}

bool idle_of(const RecordingClient& client, const Message& request) {
    for (const auto& entry : client.output) {
        if (entry.message.header().msg_type == "status" &&
            entry.message.parent().msg_id == request.header().msg_id &&
            entry.message.parse_content().value()["execution_state"] == "idle") {
            return true;
        }
    }
    return false;
}

}  // namespace

TEST_CASE("two clients share one kernel and both see all output", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto one = std::make_shared<RecordingClient>();
    const auto two = std::make_shared<RecordingClient>();
    session->subscribe(one.get());
    session->subscribe(two.get());
    const Message set = execute_request("x = 5; print('from one')", "one");
    const Message get = execute_request("print('two sees', x)", "two");
    session->submit(set, one);
    session->submit(get, two);
    CHECK(answer(fixture, *one, set)["status"] == "ok");
    CHECK(answer(fixture, *two, get)["status"] == "ok");
    fixture.run_until([&] { return idle_of(*one, get) && idle_of(*two, get); });
    CHECK(two->text_of(set) == "from one\n");
    CHECK(one->text_of(get) == "two sees 5\n");
    CHECK(one->reply_to(get) == nullptr);
    session->unsubscribe(one.get());
    session->unsubscribe(two.get());
}

TEST_CASE("control is answered while the kernel is busy", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto client = std::make_shared<RecordingClient>();
    session->subscribe(client.get());
    const Message busy = execute_request("print('on', flush=True)\nwhile True: pass");
    session->submit(busy, client);
    fixture.run_until([&] { return client->text_of(busy) == "on\n"; });
    const Message info = make_request(Channel::kControl, "kernel_info_request", json::object());
    session->submit(info, client);
    const auto reply = answer(fixture, *client, info);
    CHECK(reply["status"] == "ok");
    CHECK(reply["protocol_version"] == "5.5");
    CHECK(reply["language_info"]["name"] == "python");
    const Message unknown = make_request(Channel::kControl, "complete_request", json::object());
    session->submit(unknown, client);
    CHECK(answer(fixture, *client, unknown)["status"] == "error");
    const Message stop = make_request(Channel::kControl, "interrupt_request", json::object());
    session->submit(stop, client);
    CHECK(answer(fixture, *client, stop)["status"] == "ok");
    CHECK(answer(fixture, *client, busy)["ename"] == "KeyboardInterrupt");
    session->unsubscribe(client.get());
}

TEST_CASE("a failing cell aborts only what its own client queued behind it", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto one = std::make_shared<RecordingClient>();
    const auto two = std::make_shared<RecordingClient>();
    session->subscribe(one.get());
    const Message failing = execute_request("import time; time.sleep(0.2); 1/0", "one");
    const Message follower = execute_request("ran = True", "one");
    const Message other = execute_request("'ran' in globals()", "two");
    session->submit(failing, one);
    session->submit(follower, one);
    session->submit(other, two);
    CHECK(answer(fixture, *one, failing)["ename"] == "ZeroDivisionError");
    const auto aborted = answer(fixture, *one, follower);
    CHECK(aborted["status"] == "error");
    CHECK(aborted.contains("execution_count"));
    CHECK(aborted["ename"] == "ExecutionAborted");
    // A client that follows the output alone sees why, too.
    const auto errors = one->of_type("error");
    REQUIRE(errors.size() == 2);
    CHECK(errors[1].parent().msg_id == follower.header().msg_id);
    CHECK(errors[1].parse_content().value()["ename"] == "ExecutionAborted");
    CHECK(answer(fixture, *two, other)["status"] == "ok");
    fixture.run_until([&] { return idle_of(*one, other) && idle_of(*one, follower); });
    session->unsubscribe(one.get());
}

TEST_CASE("a request that a client sends after it has seen the error is not aborted", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto client = std::make_shared<RecordingClient>();
    session->subscribe(client.get());
    // Something follows the cell, so that its reply comes later than its error.
    fixture.execute(
        *session,
        "import time\n"
        "get_ipython().events.register('post_run_cell', lambda result: time.sleep(0.3))");
    const Message failing = execute_request("1/0");
    const Message before = execute_request("queued_before = True");
    session->submit(failing, client);
    session->submit(before, client);
    fixture.run_until([&] { return !client->of_type("error").empty(); });
    CHECK(client->reply_to(failing) == nullptr);
    const Message after = execute_request("assert 'queued_before' not in globals()");
    session->submit(after, client);
    CHECK(answer(fixture, *client, failing)["ename"] == "ZeroDivisionError");
    CHECK(answer(fixture, *client, before)["ename"] == "ExecutionAborted");
    CHECK(answer(fixture, *client, after)["status"] == "ok");
    session->unsubscribe(client.get());
}

TEST_CASE("every queued request is answered when the kernel dies", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto client = std::make_shared<RecordingClient>();
    session->subscribe(client.get());
    std::vector<Message> requests = {
        execute_request("import time, os; time.sleep(0.3); os._exit(1)", "a"),
        execute_request("1", "b"),
        make_request(
            Channel::kShell, "complete_request", {{"code", "im"}, {"cursor_pos", 2}}, "c")};
    for (const Message& request : requests) {
        session->submit(request, client);
    }
    for (const Message& request : requests) {
        const auto reply = answer(fixture, *client, request);
        CHECK(reply["status"] == "error");
        CHECK(reply["ename"] == "KernelDied");
    }
    const Message after = execute_request("40 + 2");
    session->submit(after, client);
    CHECK(answer(fixture, *client, after)["status"] == "ok");
    session->unsubscribe(client.get());
}

TEST_CASE(
    "input is asked of the client whose cell it is, and only its answer counts", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto one = std::make_shared<RecordingClient>();
    const auto two = std::make_shared<RecordingClient>();
    session->subscribe(one.get());
    const Message asking = execute_request("print('got', input('q? '))", "one");
    session->submit(asking, one);
    fixture.run_until([&] { return !one->replies.empty(); });
    REQUIRE(one->replies.front().header().msg_type == "input_request");
    CHECK(one->replies.front().parse_content().value()["prompt"] == "q? ");
    CHECK(two->replies.empty());
    session->submit(
        make_request(Channel::kStdin, "input_reply", {{"value", "forged"}}, "two"), two);
    session->submit(make_request(Channel::kStdin, "input_reply", {{"value", "real"}}, "one"), one);
    CHECK(answer(fixture, *one, asking).contains("status"));
    fixture.run_until([&] { return idle_of(*one, asking); });
    CHECK(one->text_of(asking) == "got real\n");
    session->unsubscribe(one.get());
}

TEST_CASE("a page that comes back is asked again, and its answer reaches the cell", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto gone = std::make_shared<RecordingClient>();
    const auto page = std::make_shared<RecordingClient>();
    session->subscribe(gone.get());
    const Message asking = execute_request("print('got', input('q? '))", "old page");
    session->submit(asking, gone);
    fixture.run_until([&] { return !gone->replies.empty(); });
    REQUIRE(session->question().has_value());
    CHECK(session->question()->parent().msg_id == asking.header().msg_id);
    const std::string question = session->question()->header().msg_id;
    const auto replay = [&](const std::string& msg_id) {
        const Message request = make_request(
            Channel::kControl, "cellkeep_replay_request", {{"msg_ids", {msg_id}}}, "new page");
        const std::size_t before = page->replies.size();
        session->submit(request, page);
        fixture.run_until([&] { return page->replies.size() > before; });
        return page->replies.size() - before;
    };
    CHECK(replay("another cell's") == 1);
    REQUIRE(replay(asking.header().msg_id) == 2);
    CHECK(page->replies.back().header().msg_type == "input_request");
    CHECK(page->replies.back().header().msg_id == question);
    const auto answer_with = [&](const nlohmann::json& parent, const char* value) {
        session->submit(
            Message::make(
                Channel::kStdin,
                cellkeep::protocol::make_header("input_reply", "new page", "u"),
                parent,
                {{"value", value}}),
            page);
    };
    answer_with(nlohmann::json::object(), "forged");
    answer_with({{"msg_id", ""}, {"session", "x"}}, "forged");
    answer_with({{"msg_id", question}}, "from the new page");
    answer_with({{"msg_id", question}}, "twice");
    fixture.run_until([&] { return idle_of(*gone, asking); });
    CHECK(gone->text_of(asking) == "got from the new page\n");
    CHECK_FALSE(session->question().has_value());
    session->unsubscribe(gone.get());
}

TEST_CASE("a congested observer stops the flood and loses nothing", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto client = std::make_shared<RecordingClient>();
    session->subscribe(client.get());
    const Message flood = execute_request("for i in range(100_000): print(i)");
    session->submit(flood, client);
    fixture.run_until([&] { return !client->text_of(flood).empty(); });
    client->full = true;
    // One more message may be in hand; after that the link is not read.
    const std::size_t seen = client->output.size();
    for (int i = 0; i < 50; ++i) {
        fixture.io.restart();
        fixture.io.poll();
    }
    CHECK(client->output.size() <= seen + 2);
    client->full = false;
    session->resume_output();
    fixture.run_until([&] { return idle_of(*client, flood); });
    std::string expected;
    for (int i = 0; i < 100'000; ++i) {
        expected += std::to_string(i) + "\n";
    }
    CHECK(client->text_of(flood) == expected);
    CHECK(session->journal().last_sequence() == client->output.back().sequence);
    session->unsubscribe(client.get());
}

TEST_CASE("a queue that is full refuses with an answer", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto client = std::make_shared<RecordingClient>();
    session->submit(execute_request("import time\nwhile True: time.sleep(0.01)"), client);
    Message last = execute_request("1");
    for (std::size_t i = 0; i <= cellkeep::limits::kShellQueueMax; ++i) {
        last = execute_request("1");
        session->submit(last, client);
    }
    CHECK(answer(fixture, *client, last)["ename"] == "QueueFull");
}

TEST_CASE("a client's shutdown request ends the session", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto client = std::make_shared<RecordingClient>();
    const Message shutdown =
        make_request(Channel::kControl, "shutdown_request", {{"restart", false}});
    session->submit(shutdown, client);
    CHECK(answer(fixture, *client, shutdown)["restart"] == false);
    fixture.run_until([&] { return fixture.service.find(session->id()) == nullptr; });
    const Message late = execute_request("1");
    session->submit(late, client);
    CHECK(answer(fixture, *client, late)["ename"] == "SessionClosed");
}
