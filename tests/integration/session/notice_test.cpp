// SPDX-License-Identifier: Apache-2.0
//
// What people see under their cells when an interpreter dies, restarts or goes with the server.
#include "tests/integration/session/session_fixture.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

using cellkeep::protocol::Channel;
using cellkeep::protocol::Message;
using cellkeep::session::Death;
using cellkeep::session::SessionOptions;
using cellkeep::test::execute_request;
using cellkeep::test::make_request;
using cellkeep::test::RecordingClient;
using cellkeep::test::ServiceFixture;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

json content_of(const Message& message) {
    return message.parse_content().value();
}

/// The status of this state; there must be exactly one.
Message only_status(const RecordingClient& client, const char* state) {
    std::vector<Message> found;
    for (const Message& status : client.of_type("status")) {
        if (content_of(status)["execution_state"] == state) {
            found.push_back(status);
        }
    }
    REQUIRE(found.size() == 1);
    return found.front();
}

std::size_t position_of(const RecordingClient& client, const Message& message) {
    std::size_t at = 0;
    while (at < client.output.size() &&
           client.output[at].message.header().msg_id != message.header().msg_id) {
        ++at;
    }
    return at;
}

}  // namespace

TEST_CASE(
    "a notice under the cell says that memory ran out, with the limit and what is left",
    "[session]") {
    ServiceFixture fixture;
    SessionOptions options;
    options.limits.memory_mb = 256;
    const auto session = fixture.open(options);
    const auto client = std::make_shared<RecordingClient>();
    session->subscribe(client.get());
    const Message cell =
        execute_request("big = bytearray(10 << 30)\nfor i in range(0, len(big), 4096): big[i] = 1");
    session->submit(cell, client);
    const json reply = fixture.answer(*client, cell);
    CHECK(reply["status"] == "error");
    fixture.run_until([&] { return client->saw_state("restarting"); });

    REQUIRE(client->of_type("error").size() == 1);
    const Message error = client->of_type("error").front();
    CHECK(error.parent().msg_id == cell.header().msg_id);
    CHECK(
        content_of(error)["evalue"] ==
        "The interpreter ran out of memory (limit 256 MB). It was restarted; its variables are "
        "gone, files are kept.");
    const Message restarting = only_status(*client, "restarting");
    CHECK(restarting.parent().msg_id == cell.header().msg_id);
    CHECK(content_of(restarting)["reason"] == "oom");
    CHECK(content_of(restarting)["message"] == content_of(error)["evalue"]);
    // A client forgets its cells when it gets "restarting": all their messages come before.
    CHECK(position_of(*client, error) < position_of(*client, restarting));
    CHECK(client->states_of(&cell).at(1) == "idle");
    session->unsubscribe(client.get());
}

TEST_CASE("a death between cells has a notice, too", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto client = std::make_shared<RecordingClient>();
    session->subscribe(client.get());
    const Message cell = execute_request(
        "import threading, os, time\n"
        "def end():\n"
        "    open('go').read()\n"
        "    os._exit(7)\n"
        "os.mkfifo('go')\n"
        "threading.Thread(target=end).start()");
    session->submit(cell, client);
    CHECK(fixture.answer(*client, cell)["status"] == "ok");
    const Message release = execute_request("open('go', 'w').close()");
    session->submit(release, client);
    fixture.run_until([&] { return client->saw_state("restarting"); });
    std::string told;
    for (const char* type : {"stream", "error"}) {
        for (const Message& message : client->of_type(type)) {
            told += content_of(message).dump();
        }
    }
    CHECK_THAT(told, Catch::Contains("exit code 7") && Catch::Contains("files are kept"));
    CHECK(content_of(only_status(*client, "restarting"))["reason"] == "exited(7)");
    session->unsubscribe(client.get());
}

TEST_CASE(
    "a restart that was asked for says nothing alarming and gets a new kernel session",
    "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto client = std::make_shared<RecordingClient>();
    session->subscribe(client.get());
    const Message before = execute_request("1");
    session->submit(before, client);
    REQUIRE(fixture.answer(*client, before)["status"] == "ok");
    fixture.run_until([&] { return client->states_of(&before).size() == 2; });
    const std::string old_name = client->reply_to(before)->header().session;
    REQUIRE(fixture.run(session->restart()).has_value());
    CHECK(client->of_type("stream").empty());
    CHECK(client->of_type("error").empty());
    const std::vector<std::string> states = client->states_of(nullptr);
    CHECK(states == std::vector<std::string>{"starting", "idle"});
    const Message info = make_request(Channel::kControl, "kernel_info_request", json::object());
    session->submit(info, client);
    CHECK(fixture.answer(*client, info)["status"] == "ok");
    const Message after = execute_request("1");
    session->submit(after, client);
    CHECK(fixture.answer(*client, after)["execution_count"] == 1);
    const std::string new_name = client->reply_to(after)->header().session;
    CHECK(new_name != old_name);
    // The server's own messages and the kernel's have one session name.
    CHECK(client->reply_to(info)->header().session == new_name);
    session->unsubscribe(client.get());
}

TEST_CASE("a deadline has a notice under the cell that it interrupts", "[session]") {
    ServiceFixture fixture;
    SessionOptions options;
    std::string told;
    SECTION("the clock's") {
        options.limits.wall = 700ms;
        told = "The cell reached its time limit of 0.7 s and is being interrupted.\n";
    }
    SECTION("the processor's") {
        options.limits.cpu = 700ms;
        told = "The cell reached its CPU-time limit of 0.7 s and is being interrupted.\n";
    }
    const auto session = fixture.open(options);
    const auto client = std::make_shared<RecordingClient>();
    session->subscribe(client.get());
    const Message cell = execute_request("while True: pass");
    session->submit(cell, client);
    CHECK(fixture.answer(*client, cell)["ename"] == "KeyboardInterrupt");
    CHECK(client->text_of(cell) == told);
    session->unsubscribe(client.get());
}

TEST_CASE("a server that shuts down answers, then tells, then closes", "[session]") {
    class Listener final : public cellkeep::session::SessionListener {
     public:
        explicit Listener(const RecordingClient& client) : client_(client) {}
        cellkeep::Status on_session_created(
            const std::shared_ptr<cellkeep::session::Session>& /*session*/) override {
            return cellkeep::ok();
        }
        void on_session_closed(const std::string& /*session_id*/) override {
            told_before = client_.saw_state("dead") && !client_.replies.empty();
        }
        bool told_before = false;

     private:
        const RecordingClient& client_;
    };
    const auto client = std::make_shared<RecordingClient>();
    Listener listener(*client);
    ServiceFixture fixture;
    fixture.service.add_listener(&listener);
    const auto session = fixture.open();
    session->subscribe(client.get());
    const Message cell = execute_request("print('on', flush=True)\nwhile True: pass");
    session->submit(cell, client);
    fixture.run_until([&] { return client->text_of(cell) == "on\n"; });
    fixture.service.shutdown();  // does not wait for the endless loop
    REQUIRE(client->reply_to(cell) != nullptr);
    CHECK(content_of(*client->reply_to(cell))["status"] == "error");
    CHECK(listener.told_before);
    const json dead = content_of(only_status(*client, "dead"));
    CHECK_THAT(dead["message"].get<std::string>(), Catch::Contains("The server is shutting down"));
    const json error = content_of(client->of_type("error").at(0));
    CHECK_THAT(error["evalue"].get<std::string>(), Catch::Contains("shutting down"));
    session->unsubscribe(client.get());
}
