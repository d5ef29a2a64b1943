// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/control_responder.hpp"

#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

using cellkeep::Error;
using cellkeep::ErrorCode;
using cellkeep::ok;
using cellkeep::Status;
using cellkeep::protocol::Channel;
using cellkeep::protocol::make_header;
using cellkeep::protocol::Message;
using namespace cellkeep::session;
using nlohmann::json;
namespace limits = cellkeep::limits;

namespace {

class ControlClient : public ReplySink {
 public:
    void deliver(const Message& message) override { replies.push_back(message); }
    json content() const { return replies.back().parse_content().value(); }
    std::vector<Message> replies;
};

/// A kernel that records its requests.
struct FakeControlledKernel {
    ServerMessages messages{"fake"};
    std::optional<json> info;
    bool failing = false;
    bool dead = false;
    Status interrupted = ok();
    std::vector<std::string> calls;  // statuses too: "busy", "idle"

    ControlResponder::Kernel hooks() {
        return {
            .messages = [this]() -> const ServerMessages& { return messages; },
            .publish =
                [this](Message message) {
                    calls.push_back(message.parse_content().value().value("execution_state", "?"));
                },
            .repeat_busy = [this] { calls.emplace_back("repeat"); },
            .info = [this]() -> const std::optional<json>& { return info; },
            .await_failed_end = [this] { return failing; },
            .is_dead = [this] { return dead; },
            .interrupt =
                [this] {
                    calls.emplace_back("interrupt");
                    return interrupted;
                },
            .restart = [this] { calls.emplace_back("restart"); },
            .end_session = [this] { calls.emplace_back("end"); },
            .usage =
                [] {
                    return json{{"status", "ok"}, {"kernel_memory", 7}};
                },
            .replay =
                [this](const Message& request, ReplySink& origin) {
                    origin.deliver(messages.reply(request, {{"status", "ok"}, {"replayed", 1}}));
                },
            .debug = [this](const Message&, const auto&) { calls.emplace_back("debug"); },
            .log_unknown = [this](const std::string& type) { calls.push_back("log " + type); }};
    }
};

struct ControlFixture {
    FakeControlledKernel kernel;
    ControlResponder responder{kernel.hooks()};
    std::shared_ptr<ControlClient> client = std::make_shared<ControlClient>();

    void ask(
        const std::string& type,
        const json& content = json::object(),
        Channel channel = Channel::kControl) {
        responder.submit(
            Message::make(channel, make_header(type, "client", "user"), json::object(), content),
            client);
    }
    using Calls = std::vector<std::string>;
};

}  // namespace

TEST_CASE("kernel_info waits for the kernel to be ready", "[session][control]") {
    ControlFixture fixture;
    fixture.ask("kernel_info_request");
    CHECK(fixture.client->replies.empty());
    CHECK(fixture.responder.waiting() == 1);
    SECTION("and has what the kernel says then") {
        fixture.kernel.info = json{{"status", "ok"}, {"implementation", "x"}};
        fixture.responder.answer_waiting();
        REQUIRE(fixture.client->replies.size() == 1);
        CHECK(fixture.client->content()["implementation"] == "x");
        CHECK(fixture.kernel.calls == ControlFixture::Calls{"busy", "idle", "repeat"});
        fixture.ask("kernel_info_request");  // at once from now on
        CHECK(fixture.client->replies.size() == 2);
    }
    SECTION("or is an error when it never will be") {
        fixture.kernel.dead = true;
        fixture.responder.answer_waiting();
        REQUIRE(fixture.client->replies.size() == 1);
        CHECK(fixture.client->content()["ename"] == "KernelDead");
    }
    SECTION("or is an error when the session ends") {
        fixture.responder.refuse_waiting("It is over.");
        REQUIRE(fixture.client->replies.size() == 1);
        CHECK(fixture.client->content()["ename"] == "SessionClosed");
        CHECK(fixture.client->content()["evalue"] == "It is over.");
        CHECK(fixture.kernel.calls == ControlFixture::Calls{"busy", "idle"});
    }
    CHECK(fixture.responder.waiting() == 0);
}

TEST_CASE("kernel_info on shell waits for the end of code that failed", "[session][control]") {
    ControlFixture fixture;
    fixture.kernel.info = json{{"status", "ok"}};
    const auto ask_on_shell = [&fixture] {
        fixture.ask("kernel_info_request", json::object(), Channel::kShell);
    };
    ask_on_shell();  // nothing fails
    CHECK(fixture.client->replies.size() == 1);
    fixture.kernel.failing = true;
    ask_on_shell();
    CHECK(fixture.client->replies.size() == 1);
    CHECK(fixture.responder.waiting() == 1);
    SECTION("and is answered then") {
        fixture.kernel.failing = false;
        fixture.responder.answer_waiting();
        CHECK(fixture.client->replies.size() == 2);
        CHECK(fixture.client->content()["status"] == "ok");
        CHECK(fixture.responder.waiting() == 0);
    }
    SECTION("but not on control, and nothing else does") {
        fixture.ask("kernel_info_request");
        CHECK(fixture.client->replies.size() == 2);
        fixture.ask("interrupt_request");
        CHECK(fixture.client->replies.size() == 3);
        fixture.ask("usage_request", json::object(), Channel::kShell);
        CHECK(fixture.client->replies.size() == 4);
    }
    SECTION("or is answered at once if too many wait") {
        for (std::size_t i = 1; i < limits::kShellQueueMax; ++i) {
            ask_on_shell();
        }
        CHECK(fixture.client->replies.size() == 1);
        ask_on_shell();
        CHECK(fixture.client->replies.size() == 2);
        CHECK(fixture.client->content()["status"] == "ok");
    }
}

TEST_CASE("kernel_info of a dead kernel is an error at once", "[session][control]") {
    ControlFixture fixture;
    fixture.kernel.dead = true;
    fixture.ask("kernel_info_request");
    CHECK(fixture.responder.waiting() == 0);
    CHECK(fixture.client->content()["ename"] == "KernelDead");
}

TEST_CASE("what waits for the kernel is bounded", "[session][control]") {
    ControlFixture fixture;
    for (std::size_t i = 0; i < limits::kShellQueueMax; ++i) {
        fixture.ask("kernel_info_request");
    }
    CHECK(fixture.client->replies.empty());
    fixture.ask("kernel_info_request");
    REQUIRE(fixture.client->replies.size() == 1);
    CHECK(fixture.client->content()["status"] == "error");
    CHECK(fixture.responder.waiting() == limits::kShellQueueMax);
}

TEST_CASE("a debug request waits for the kernel and goes to it", "[session][control]") {
    ControlFixture fixture;
    fixture.ask("debug_request");
    CHECK(fixture.kernel.calls.empty());
    fixture.kernel.info = json::object();
    fixture.responder.answer_waiting();
    CHECK(fixture.kernel.calls == ControlFixture::Calls{"debug"});
}

TEST_CASE("other control requests do not wait for the kernel", "[session][control]") {
    ControlFixture fixture;
    fixture.ask("usage_request");
    CHECK(fixture.client->content()["kernel_memory"] == 7);
    fixture.ask("cellkeep_replay_request");
    CHECK(fixture.client->content()["replayed"] == 1);
    fixture.ask("interrupt_request");
    CHECK(fixture.client->content()["status"] == "ok");
    CHECK(fixture.kernel.calls.back() == "repeat");
}

TEST_CASE("an interrupt that fails says so", "[session][control]") {
    ControlFixture fixture;
    fixture.kernel.interrupted = Error(ErrorCode::kConflict, "nothing to interrupt");
    fixture.ask("interrupt_request");
    CHECK(fixture.client->content()["ename"] == "InterruptFailed");
    CHECK(fixture.client->content()["evalue"] == "nothing to interrupt");
}

TEST_CASE("a shutdown is answered before it begins", "[session][control]") {
    ControlFixture fixture;
    SECTION("of the session") {
        fixture.ask("shutdown_request");
        CHECK(fixture.client->content()["restart"] == false);
        CHECK(fixture.kernel.calls == ControlFixture::Calls{"busy", "idle", "end"});
    }
    SECTION("of the kernel, to be restarted") {
        fixture.ask("shutdown_request", {{"restart", true}});
        CHECK(fixture.client->content()["restart"] == true);
        CHECK(fixture.kernel.calls == ControlFixture::Calls{"busy", "idle", "restart"});
    }
    SECTION("with something else than a truth value") {
        fixture.ask("shutdown_request", {{"restart", "yes"}});
        CHECK(fixture.client->content()["restart"] == false);
        CHECK(fixture.kernel.calls.back() == "end");
    }
}

TEST_CASE("what is not offered on control gets an error reply", "[session][control]") {
    ControlFixture fixture;
    for (const char* type : {"execute_request", "complete_request", "apply_request"}) {
        INFO(type);
        fixture.ask(type);
        CHECK(fixture.client->content()["ename"] == "NotImplementedError");
    }
}

TEST_CASE("an unknown control message is logged and gets no reply", "[session][control]") {
    ControlFixture fixture;
    // A kernel without subshells ignores their requests (JEP 91).
    for (const std::string type :
         {"nonsense",
          "create_subshell_request",
          "delete_subshell_request",
          "list_subshell_request"}) {
        INFO(type);
        fixture.kernel.calls.clear();
        fixture.ask(type);
        CHECK(fixture.client->replies.empty());
        CHECK(
            fixture.kernel.calls == ControlFixture::Calls{"busy", "log " + type, "idle", "repeat"});
    }
}
