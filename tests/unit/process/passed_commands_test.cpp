// SPDX-License-Identifier: Apache-2.0
//
// Commands on their way to another program: one table passes them, another has them then.
#include "kernel-manager/process/passed_commands.hpp"

#include "protocol/limits.hpp"
#include "tests/unit/process/fake_commands.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::process {
namespace {

using nlohmann::json;

struct PassingFixture {
    PassingFixture() {
        (void)::signal(SIGPIPE, SIG_IGN);  // as the server does
    }

    boost::asio::io_context io;
    test::FakeCommands before{io};
    test::FakeCommands after{io};

    /// As through execve: written down, and the descriptors beside it.
    void pass() {
        PassedCommands passed = before.table.pass_on();
        const json ended = write_ended(passed);
        const json text = json::from_cbor(json::to_cbor(write_commands(passed)));
        auto ends = take_ends(passed);
        before.table.close();
        PassedCommands read = read_commands(text, ended, std::move(ends));
        const Status gone_on = after.table.go_on(std::move(read));
        REQUIRE(gone_on.has_value());
    }
    /// A piece of output, until it is read. That may wait for the period of a ration to end; a
    /// piece written meanwhile would fill the pipe, and this thread would wait for itself.
    void pour(const Command& command, std::size_t index) {
        const std::uint64_t total = command.output().total() + kOutputPieceBytesMax;
        before.write_out(index, std::string(kOutputPieceBytesMax, 'x'));
        while (command.output().total() < total) {
            io.restart();
            (void)io.run_one();
        }
    }
    std::shared_ptr<Command> find(const std::string& id) const {
        auto found = after.table.find(id);
        REQUIRE(found != nullptr);
        return found;
    }
};

std::string text_of(const Command& command, Stream stream = Stream::kStdout) {
    std::string text;
    for (auto next = command.output().after(0); !next.text.empty();
         next = command.output().after(next.end)) {
        text += next.stream == stream ? next.text : std::string_view();
    }
    return text;
}

std::string read_input(int fd, std::size_t bytes) {
    std::string text(bytes, '\0');
    const ssize_t got = ::read(fd, text.data(), text.size());
    REQUIRE(got >= 0);
    text.resize(static_cast<std::size_t>(got));
    return text;
}

TEST_CASE("a command that runs goes on in another table", "[process][passing]") {
    PassingFixture fixture;
    const auto command =
        fixture.before.start_one({{"/bin/cat", "a b"}, {}, "/tmp", true, std::string("mine")});
    const std::string id = command->id();
    const CommandInfo info = command->info();
    fixture.before.write_out(0, "one\xc3");  // half a character is held here
    fixture.before.poll();
    CHECK(text_of(*command) == "one");
    fixture.before.write_out(0, "\xa9two");  // waits in the pipe
    REQUIRE(fixture.before.table.write(id, "input", false).has_value());
    fixture.pass();

    const auto again = fixture.find(id);
    CHECK(again->info().label == "mine");
    CHECK(again->info().argv == info.argv);
    CHECK(again->info().directory == "/tmp");
    CHECK(again->info().pid == info.pid);
    CHECK(again->info().started_at == info.started_at);
    CHECK(again->info().input_open);
    CHECK(again->output().total() == 3);
    CHECK(fixture.after.table.running() == 1);
    fixture.after.poll();
    CHECK(text_of(*again) == "one\xc3\xa9two");
    CHECK(again->output().first_kept() == 0);
    // The old table reads and writes nothing more, and has ended nothing.
    CHECK(command->output().total() == 0);
    CHECK(fixture.before.signals.empty());

    const int in = fixture.before.specs[0].stdin_fd.get();
    CHECK(read_input(in, 16) == "input");
    REQUIRE(fixture.after.table.write(id, "more", true).has_value());
    CHECK(read_input(in, 16) == "more");
    CHECK(read_input(in, 16).empty());  // the end
    REQUIRE(fixture.after.table.signal(id, SIGTERM).has_value());
    CHECK(fixture.after.signals.back() == std::pair(sandbox::WorkerId{1}, SIGTERM));
    fixture.before.write_out(0, "last");
    fixture.after.exit(1, 3);
    REQUIRE(again->end().has_value());
    CHECK(again->end()->status == 3);
    CHECK(text_of(*again) == "one\xc3\xa9twolast");
    CHECK(fixture.after.ends == 1);
}

TEST_CASE("what waits for a command reaches it through the other table", "[process][passing]") {
    PassingFixture fixture;
    const auto command = fixture.before.start_one();
    const int in = fixture.before.specs[0].stdin_fd.get();
    const auto room = static_cast<std::size_t>(::fcntl(in, F_GETPIPE_SZ));
    const bool last = GENERATE(false, true);
    REQUIRE(
        fixture.before.table.write(command->id(), std::string(room + 5, 'p'), last).has_value());
    CHECK(command->waiting_input() == 5);
    fixture.pass();
    const auto again = fixture.find(command->id());
    CHECK(again->waiting_input() == 5);
    CHECK(again->info().input_open == !last);
    CHECK(fixture.after.table.write(again->id(), "q", false).has_error() == last);
    std::size_t got = 0;
    while (got < room + 5) {
        got += read_input(in, room + 5 - got).size();
        fixture.after.poll();
    }
    CHECK(again->waiting_input() == 0);
    REQUIRE(set_nonblocking(in).has_value());
    char byte = 0;
    CHECK(::read(in, &byte, 1) == (last ? 0 : 1));
}

TEST_CASE("a command without an input has none afterwards", "[process][passing]") {
    PassingFixture fixture;
    const auto deaf = fixture.before.start_one({{"/bin/cat"}, {}, {}, false, {}});
    const auto closed = fixture.before.start_one();
    REQUIRE(fixture.before.table.write(closed->id(), "", true).has_value());
    fixture.pass();
    for (const auto& one : {deaf, closed}) {
        CHECK_FALSE(fixture.find(one->id())->info().input_open);
        const Status refused = fixture.after.table.write(one->id(), "x", false);
        REQUIRE(refused.has_error());
        CHECK(refused.error().code() == ErrorCode::kConflict);
    }
}

TEST_CASE("what a command has left is read on and kept nowhere", "[process][passing]") {
    PassingFixture fixture;
    const auto command = fixture.before.start_one();
    fixture.before.write_out(0, "said");
    fixture.before.exit(1, 0);
    CHECK_FALSE(command->is_over());
    CHECK(fixture.before.table.find_obstacle() == std::nullopt);
    fixture.pass();
    const auto again = fixture.find(command->id());
    REQUIRE(again->end().has_value());
    CHECK_FALSE(again->is_over());
    CHECK(again->info().ended_at == command->info().ended_at);
    fixture.before.write_out(0, "more");
    fixture.after.poll();
    CHECK(text_of(*again) == "said");
    fixture.before.specs.clear();  // what it has left ends
    fixture.after.poll();
    CHECK(again->is_over());
    CHECK(fixture.after.table.running() == 0);
}

TEST_CASE("a terminal has its size and its input in another table", "[process][passing]") {
    PassingFixture fixture;
    CommandOrder order{{"/bin/bash"}, {}, {}, false, {}};
    order.terminal = CommandOrder::Terminal{{30, 100}};
    const auto command = fixture.before.start_one(order);
    const int terminal = fixture.before.specs[0].terminal_fd.get();
    REQUIRE(::write(terminal, "one", 3) == 3);
    fixture.before.poll();
    fixture.pass();
    const auto again = fixture.find(command->id());
    CHECK(again->info().terminal->columns == 100);
    REQUIRE(fixture.after.table.write(again->id(), "typed\n", false).has_value());
    CHECK(read_input(terminal, 64) == "typed\n");
    REQUIRE(fixture.after.table.resize(again->id(), {40, 120}).has_value());
    REQUIRE(::write(terminal, "two", 3) == 3);
    fixture.after.exit(1, 0);
    CHECK(text_of(*again).starts_with("one"));
    CHECK(text_of(*again).ends_with("two"));
    CHECK(again->is_over());  // it was hung up on
}

TEST_CASE("the order of ends and a wish to forget pass", "[process][passing]") {
    PassingFixture fixture;
    std::vector<std::string> ids;
    for (std::size_t i = 0; i <= kEndedCommandsMax; ++i) {
        ids.push_back(fixture.before.start_one()->id());
    }
    // The last ones first; the very first goes on.
    for (std::size_t i = kEndedCommandsMax; i > 0; --i) {
        fixture.before.exit(static_cast<sandbox::WorkerId>(i + 1), 0);
    }
    const auto unwanted = fixture.before.start_one();
    REQUIRE(fixture.before.table.remove(unwanted->id()).has_value());
    fixture.pass();
    // Another one that ends is one too many: the one that ended first goes.
    fixture.after.exit(1, 0);
    CHECK(fixture.after.table.find(ids.back()) == nullptr);
    CHECK(fixture.after.table.find(ids[1]) != nullptr);
    CHECK(fixture.after.table.find(ids[0]) != nullptr);
    CHECK(fixture.after.table.find(unwanted->id()) != nullptr);
    fixture.after.table.on_worker_exit({kEndedCommandsMax + 2, true, SIGKILL, {}});
    CHECK(fixture.after.table.find(unwanted->id()) == nullptr);
}

TEST_CASE("a command that waits for its reader does so in another table", "[process][passing]") {
    PassingFixture fixture;
    CommandOrder order{{"/bin/yes"}, {}, {}, false, {}};
    order.when_full = WhenFull::kWait;
    const auto command = fixture.before.start_one(order);
    const int out = fixture.before.specs[0].stdout_fd.get();
    REQUIRE(set_nonblocking(out).has_value());
    const std::string page(4096, 'x');
    std::uint64_t written = 0;
    const auto fill = [&](test::FakeCommands& fake) {
        for (ssize_t got = 0; got >= 0; fake.poll()) {
            got = ::write(out, page.data(), page.size());
            written += got > 0 ? static_cast<std::uint64_t>(got) : 0U;
        }
    };
    fill(fixture.before);
    (void)command->read_after(1);
    const auto total = command->output().total();
    fixture.pass();
    const auto again = fixture.find(command->id());
    fill(fixture.after);
    // What is kept takes as much memory, to a read exact.
    CHECK(again->output().total() <= total + limits::kStreamChunkBytesMax);
    CHECK(written < kOutputBytesMax);
    // Its reader comes back, and nothing is missing.
    std::uint64_t place = 1;
    for (auto next = again->read_after(place); !next.text.empty();
         next = again->read_after(place)) {
        CHECK(next.missed == 0);
        place = next.end;
        fixture.after.poll();
    }
    CHECK(place == written);
}

TEST_CASE("new commands count with those that were passed", "[process][passing]") {
    PassingFixture fixture;
    for (std::size_t i = 0; i < kCommandsMax; ++i) {
        (void)fixture.before.start_one();
    }
    fixture.pass();
    CHECK(fixture.after.table.running() == kCommandsMax);
    const auto over = fixture.after.start({{"/bin/cat"}, {}, {}, false, {}});
    REQUIRE(over.has_error());
    CHECK(over.error().code() == ErrorCode::kLimitExceeded);
    fixture.after.exit(1, 0);
    (void)fixture.after.start_one();
}

TEST_CASE("what keeps commands from passing is said", "[process][passing]") {
    PassingFixture fixture;
    auto& table = fixture.before.table;
    CHECK(table.find_obstacle() == std::nullopt);
    SECTION("a request that waits for one") {
        CommandOrder order{{"/bin/cat"}, {}, {}, false, {}};
        order.awaited = true;
        (void)fixture.before.start_one(order);
        CHECK(table.find_obstacle() == "a command runs that a request waits for");
        fixture.before.exit(1, 0);
        CHECK(table.find_obstacle() == std::nullopt);
    }
    SECTION("more input than may pass, of all together") {
        const auto first = fixture.before.start_one();
        const auto second = fixture.before.start_one();
        const auto room =
            static_cast<std::size_t>(::fcntl(fixture.before.specs[0].stdin_fd.get(), F_GETPIPE_SZ));
        const std::string half(room + kPassedInputBytesMax / 2, 'x');
        REQUIRE(table.write(first->id(), half, false).has_value());
        REQUIRE(table.write(second->id(), half, false).has_value());
        CHECK(table.find_obstacle() == std::nullopt);
        REQUIRE(table.write(second->id(), "x", false).has_value());
        CHECK(table.find_obstacle() == "its commands have not read what was sent to them");
        fixture.before.exit(2, 0);
        CHECK(table.find_obstacle() == std::nullopt);
    }
    SECTION("more output than may pass, of all together, running or not") {
        constexpr std::size_t kFull = kPassedCommandsBytesMax / kOutputBytesMax;
        static_assert(kFull < kCommandsMax);
        std::size_t kept = 0;
        for (std::size_t i = 0; i < kFull; ++i) {
            const auto command = fixture.before.start_one();
            while (command->output().total() < kOutputBytesMax) {
                fixture.pour(*command, i);
            }
            kept += command->output().bytes();
            CHECK(table.find_obstacle() == std::nullopt);
        }
        CHECK(kept <= kPassedCommandsBytesMax);
        CHECK(table.passed_bytes() >= kept);
        CHECK(table.passed_bytes() <= kept + kFull * 2 * kPassedCommandBesidesBytes);
        const auto last = fixture.before.start_one();
        while (kept + last->output().bytes() <= kPassedCommandsBytesMax) {
            CHECK(table.find_obstacle() == std::nullopt);
            fixture.pour(*last, kFull);
        }
        CHECK(table.find_obstacle() == "its commands keep more than 4 MiB of output together");
        fixture.before.exit(1, 0);
        CHECK(table.find_obstacle() == "its commands keep more than 4 MiB of output together");
        REQUIRE(table.remove(table.list().front()->id()).has_value());
        CHECK(table.find_obstacle() == std::nullopt);
    }
}

TEST_CASE("clients of commands are counted while they are there", "[process][passing]") {
    PassingFixture fixture;
    auto& table = fixture.before.table;
    CHECK(table.attached() == 0);
    auto one = table.attach();
    const auto other = table.attach();
    CHECK(table.attached() == 2);
    one.reset();
    CHECK(table.attached() == 1);
}

}  // namespace
}  // namespace cellkeep::process
