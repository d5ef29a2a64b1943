// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/process/kernel_process.hpp"

#include "protocol/frame.hpp"
#include "tests/unit/kernel/starts_fixture.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace cellkeep::session {
namespace {

using protocol::Channel;
using protocol::Message;
using test::StartsFixture;
using test::WaitingChild;

/// A kernel's process and what it has said.
struct ProcessFixture : StartsFixture {
    std::vector<std::string> said;
    bool awaits_busy = false;
    std::unique_ptr<KernelProcess> process;

    /// On the link, as the process would.
    void say(const std::string& type) {
        const auto message = Message::make(
            Channel::kIopub,
            protocol::make_header(type, "s", "u"),
            nlohmann::json::object(),
            nlohmann::json::object());
        const std::string frame(message.frame());
        REQUIRE(write_all(
                    sandbox.taken.at(0).link_fd.get(),
                    protocol::encode_link_prefix(frame.size()) + frame)
                    .has_value());
    }
    void print(const std::string& text) {
        REQUIRE(write_all(sandbox.taken.at(0).stdout_fd.get(), text).has_value());
    }
    void start() {
        auto started = KernelProcess::start(
            io,
            *starts,
            {"/bin/kernel"},
            {},
            "/workspace",
            false,
            0,
            {.on_message =
                 [this](const Message& message) {
                     said.push_back(message.header().msg_type);
                     awaits_busy = awaits_busy && said.back() != "busy";
                 },
             .on_text = [this](OutputStream, std::string_view text) { said.emplace_back(text); },
             .awaits_busy = [this] { return awaits_busy; },
             .on_link_closed = [this](const Error&) { said.emplace_back("link closed"); },
             .on_start_failed =
                 [this](const Error& error) {
                     said.push_back("failed: " + error.message());
                     process.reset();
                 }});
        REQUIRE(started.has_value());
        process = std::move(started).value();
    }
};

TEST_CASE("what is sent to a process before its birth waits for it", "[session][process]") {
    ProcessFixture fixture;
    const WaitingChild child;
    fixture.start();
    CHECK(fixture.process->id() == 1);
    REQUIRE(fixture.process
                ->send(Message::make(
                    Channel::kShell,
                    protocol::make_header("kernel_info_request", "s", "u"),
                    nlohmann::json::object(),
                    nlohmann::json::object()))
                .has_value());
    fixture.poll();
    const int link = fixture.sandbox.taken.at(0).link_fd.get();
    char byte = 0;
    CHECK(::recv(link, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 1);
    REQUIRE(::write(fixture.sandbox.taken[0].stderr_fd.get(), "words", 5) == 5);
    fixture.sandbox.answer_with(child);
    fixture.until([&] { return !fixture.said.empty(); });
    CHECK(fixture.said == std::vector<std::string>{"words"});
    CHECK(child.lives());
}

TEST_CASE(
    "a signal for a process that is not born yet is sent at its birth", "[session][process]") {
    ProcessFixture fixture;
    WaitingChild child;
    fixture.start();
    int expected = SIGINT;
    CHECK(fixture.process->send_signal(SIGINT).has_value());
    SECTION("one") {}
    SECTION("SIGKILL comes before all others") {
        expected = SIGKILL;
        CHECK(fixture.process->send_signal(SIGKILL).has_value());
        CHECK(fixture.process->send_signal(SIGINT).has_value());
    }
    fixture.sandbox.answer_with(child);
    fixture.poll();
    CHECK(child.wait_for_signal() == expected);
    CHECK(fixture.process->send_signal(SIGINT).has_error());
}

TEST_CASE("a start that fails is reported once, and its owner may let go", "[session][process]") {
    ProcessFixture fixture;
    fixture.start();
    fixture.sandbox.answer(Error(ErrorCode::kNotFound, "no such program"));
    fixture.poll();
    CHECK(fixture.said == std::vector<std::string>{"failed: no such program"});
    CHECK(fixture.process == nullptr);
}

TEST_CASE("a process that is given up before its birth is killed", "[session][process]") {
    ProcessFixture fixture;
    WaitingChild child;
    fixture.start();
    fixture.process.reset();
    fixture.sandbox.answer_with(child);
    fixture.poll();
    CHECK(child.wait_for_signal() == SIGKILL);
    CHECK(fixture.said.empty());
}

TEST_CASE("one look at the pipes also tells of another descriptor", "[session][process]") {
    ProcessFixture fixture;
    const WaitingChild child;
    fixture.start();
    fixture.sandbox.answer_with(child);
    fixture.poll();
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    const UniqueFd other(ends[0]);
    const UniqueFd writer(ends[1]);
    const bool text = GENERATE(true, false);
    if (text) {
        fixture.print("text");
    }
    CHECK_FALSE(fixture.process->drain_pipes(other.get()));
    CHECK(fixture.said.size() == (text ? 1 : 0));
    REQUIRE(write_all(writer.get(), "x").has_value());
    CHECK(fixture.process->drain_pipes(other.get()));
    CHECK_FALSE(fixture.process->drain_pipes(-1));
    CHECK(fixture.said.size() == (text ? 1 : 0));
}

TEST_CASE("the busy of a run is heard before the first text of its code", "[session][process]") {
    ProcessFixture fixture;
    const WaitingChild child;
    fixture.start();
    fixture.sandbox.answer_with(child);
    fixture.poll();
    // Both have come before the loop looks, and it looks at the pipe first.
    fixture.print("text");
    using Said = std::vector<std::string>;
    SECTION("the text is not mistaken for an earlier run's, nor left for a later one") {
        fixture.awaits_busy = true;
        fixture.say("busy");
        fixture.say("idle");
        fixture.until([&] { return fixture.said.size() == 3; });
        CHECK(fixture.said == Said{"busy", "text", "idle"});
    }
    SECTION("text that comes before it is handed out at once") {
        fixture.awaits_busy = true;
        fixture.until([&] { return !fixture.said.empty(); });
        fixture.say("busy");
        fixture.until([&] { return fixture.said.size() == 2; });
        CHECK(fixture.said == Said{"text", "busy"});
    }
    SECTION("while none is awaited, the pipe is read as it comes") {
        fixture.say("display");
        fixture.until([&] { return fixture.said.size() == 2; });
        CHECK(fixture.said == Said{"text", "display"});
    }
    SECTION("a link that has closed meanwhile takes no text away") {
        fixture.awaits_busy = true;
        fixture.sandbox.taken[0].link_fd.reset();
        fixture.until([&] { return fixture.said.size() == 2; });
        CHECK(fixture.said == Said{"text", "link closed"});
    }
}

}  // namespace
}  // namespace cellkeep::session
