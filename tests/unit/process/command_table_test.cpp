// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/process/command_table.hpp"

#include "kernel-manager/process/output_ration.hpp"
#include "sandbox/shared/messages.hpp"
#include "tests/unit/process/fake_commands.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::process {
namespace {

using Words = std::vector<std::string>;

struct TableFixture {
    boost::asio::io_context io;
    test::FakeCommands fake{io};
};

std::string all_of(const Command& command) {
    std::string text;
    for (auto next = command.output().after(0); !next.text.empty();
         next = command.output().after(next.end)) {
        text += next.text;
    }
    return text;
}

ErrorCode refusal_of(const Status& status) {
    REQUIRE(status.has_error());
    return status.error().code();
}

TEST_CASE("a command is started as it was asked for", "[process][table]") {
    TableFixture fixture;
    const auto command = fixture.fake.start_one(
        {{"/bin/echo", "a b"}, {{"X", "1"}}, "/tmp", false, std::string("mine")});
    const sandbox::WorkerSpec& spec = fixture.fake.specs.at(0);
    CHECK(spec.argv == Words{"/bin/echo", "a b"});
    CHECK(spec.env == Words{"SESSION=1", "X=1"});
    CHECK(spec.working_directory == "/tmp");
    CHECK(spec.group == sandbox::kCommandGroup);
    CHECK_FALSE(spec.stdin_fd);
    CHECK_FALSE(spec.link_fd);
    const CommandInfo info = command->info();
    CHECK(info.id.starts_with("prc_"));
    CHECK(info.id.size() == 28);
    CHECK(info.label == "mine");
    CHECK(info.pid == 101);
    CHECK_FALSE(info.input_open);
    CHECK_FALSE(info.end.has_value());
    CHECK(fixture.fake.wakes == 1);
    CHECK(fixture.fake.table.running() == 1);
    CHECK(fixture.fake.table.find(info.id) == command);
    CHECK(fixture.fake.table.find("prc_0") == nullptr);
}

TEST_CASE("a program without a path is the shell's to find", "[process][table]") {
    TableFixture fixture;
    (void)fixture.fake.start_one({{"ls", "-l"}, {}, {}, false, {}});
    CHECK(fixture.fake.specs.at(0).argv == Words{"/bin/sh", "-c", "exec \"$@\"", "sh", "ls", "-l"});
    CHECK(fixture.fake.specs.at(0).working_directory == "/workspace/own");
    (void)fixture.fake.start_one({{"/bin/ls"}, {}, "data", false, {}});
    CHECK(fixture.fake.specs.at(1).working_directory == "/workspace/data");
}

TEST_CASE("output is read while it comes and up to the end", "[process][table]") {
    TableFixture fixture;
    const auto command = fixture.fake.start_one();
    int news = 0;
    const auto listener = command->subscribe([&] { ++news; });
    fixture.fake.write_out(0, "one");
    fixture.fake.poll();
    CHECK(all_of(*command) == "one");
    CHECK(news == 1);
    // What the pipe holds when the process has ended belongs to it.
    fixture.fake.write_out(0, "two\xc3");  // and so does half a character
    fixture.fake.exit(1, 3);
    CHECK(all_of(*command) == "onetwo\xc3");
    REQUIRE(command->end().has_value());
    CHECK(command->end()->kind == CommandEnd::Kind::kExited);
    CHECK(command->end()->status == 3);
    CHECK(fixture.fake.ends == 1);
    // What it has started and left may write on, and is not kept.
    fixture.fake.write_out(0, "three");
    fixture.fake.poll();
    CHECK(all_of(*command) == "onetwo\xc3");
    CHECK(fixture.fake.table.running() == 0);
    fixture.fake.exit(1, 4);
    CHECK(command->end()->status == 3);
}

/// Writes as long as the pipe takes more, and reads as the table does. Returns what it wrote.
std::size_t write_until_full(TableFixture& fixture) {
    const int out = fixture.fake.specs.at(0).stdout_fd.get();
    REQUIRE(set_nonblocking(out).has_value());
    const std::string page(4096, 'x');
    constexpr std::size_t kEnough = 4 * kOutputBytesMax;
    std::size_t written = 0;
    while (written < kEnough) {
        const ssize_t got = ::write(out, page.data(), page.size());
        if (got < 0) {
            REQUIRE(errno == EAGAIN);
            return written;
        }
        written += static_cast<std::size_t>(got);
        fixture.fake.poll();
    }
    return written;
}

TEST_CASE("a command waits for a reader if that was asked for", "[process][table]") {
    TableFixture fixture;
    CommandOrder order{{"/bin/yes"}, {}, {}, false, {}};
    order.when_full = WhenFull::kWait;
    const auto command = fixture.fake.start_one(order);
    std::size_t written = write_until_full(fixture);
    CHECK(written < kOutputBytesMax);
    CHECK(command->output().total() > kUnreadBytesMax / 2);
    CHECK(command->output().first_kept() == 0);
    // A reader that comes along takes all of it, and the command goes on.
    std::uint64_t place = 0;
    for (int turns = 0; turns < 2; ++turns) {
        for (auto next = command->read_after(place); !next.text.empty();
             next = command->read_after(place)) {
            CHECK(next.missed == 0);
            place = next.end;
            fixture.fake.poll();
        }
        const std::size_t more = write_until_full(fixture);
        CHECK(more > kUnreadBytesMax / 2);
        CHECK(more < kOutputBytesMax);
        written += more;
    }
    // A place that it has not reached is no reading.
    (void)command->read_after(place + (std::uint64_t(1) << 40U));
    // What the pipe holds at the end is there, too.
    fixture.fake.exit(1, 0);
    CHECK(command->output().total() == written);
    CHECK(command->read_after(place).missed == 0);
    // What it has left writes on, and is kept nowhere.
    CHECK(write_until_full(fixture) > kUnreadBytesMax / 2);
    CHECK(command->output().total() == written);
}

TEST_CASE("a command that waits for a reader waits for the next period, too", "[process][table]") {
    TableFixture fixture;
    CommandOrder order{{"/bin/yes"}, {}, {}, false, {}};
    order.when_full = WhenFull::kWait;
    const auto command = fixture.fake.start_one(order);
    (void)write_until_full(fixture);
    const auto total = command->output().total();
    command->pause_reading();
    command->resume_reading();
    fixture.fake.poll();
    CHECK(command->output().total() == total);
    command->pause_reading();
    (void)command->read_after(total);
    fixture.fake.poll();
    CHECK(command->output().total() == total);
    command->resume_reading();
    fixture.fake.poll();
    CHECK(command->output().total() > total);
}

TEST_CASE(
    "without a wish the oldest output goes, and the command never waits", "[process][table]") {
    TableFixture fixture;
    const auto command = fixture.fake.start_one({{"/bin/yes"}, {}, {}, false, {}});
    CHECK(write_until_full(fixture) >= kOutputBytesMax);
    CHECK(command->output().first_kept() > 0);
}

TEST_CASE("a listener that has gone hears nothing more", "[process][table]") {
    TableFixture fixture;
    auto command = fixture.fake.start_one();
    int news = 0;
    auto listener = command->subscribe([&] { ++news; });
    auto other = command->subscribe([&] { ++news; });
    listener.reset();
    fixture.fake.exit(1, 0);
    CHECK(news == 1);
    fixture.fake.table.close();
    command.reset();
    other.reset();  // after the command
}

TEST_CASE("how a command ended is told apart", "[process][table]") {
    TableFixture fixture;
    const auto command = fixture.fake.start_one();
    auto kind = CommandEnd::Kind::kExited;
    SECTION("by a signal") {
        fixture.fake.table.on_worker_exit({1, true, SIGTERM, {}});
        kind = CommandEnd::Kind::kSignaled;
        CHECK(command->end()->status == SIGTERM);
    }
    SECTION("before it was its program") {
        fixture.fake.table.on_worker_exit({1, false, 127, "exec: No such file or directory"});
        kind = CommandEnd::Kind::kFailed;
        CHECK(command->end()->failure == "exec: No such file or directory");
    }
    SECTION("with the sandbox") {
        fixture.fake.table.on_sandbox_died();
        kind = CommandEnd::Kind::kSignaled;
    }
    SECTION("with the session") {
        fixture.fake.table.close();
        kind = CommandEnd::Kind::kSessionEnded;
    }
    REQUIRE(command->end().has_value());
    CHECK(command->end()->kind == kind);
    fixture.fake.table.on_worker_exit({7, false, 0, {}});  // of an interpreter
}

TEST_CASE("a command has input if it was asked for, until it has ended", "[process][table]") {
    TableFixture fixture;
    auto& table = fixture.fake.table;
    const auto command = fixture.fake.start_one();
    const auto deaf = fixture.fake.start_one({{"/bin/cat"}, {}, {}, false, {}});
    CHECK(command->info().input_open);
    REQUIRE(table.write(command->id(), "text", false).has_value());
    std::string text(16, '\0');
    CHECK(::read(fixture.fake.specs[0].stdin_fd.get(), text.data(), text.size()) == 4);
    CHECK(refusal_of(table.write(deaf->id(), "text", false)) == ErrorCode::kConflict);
    CHECK(refusal_of(table.write("prc_0", "text", false)) == ErrorCode::kNotFound);
    const std::string over(kInputBytesMax + 1, 'x');
    CHECK(refusal_of(table.write(command->id(), over, false)) == ErrorCode::kLimitExceeded);
    REQUIRE(table.write(command->id(), "", true).has_value());
    CHECK(::read(fixture.fake.specs[0].stdin_fd.get(), text.data(), text.size()) == 0);
    CHECK_FALSE(command->info().input_open);
    CHECK(refusal_of(table.write(command->id(), "more", false)) == ErrorCode::kConflict);
    fixture.fake.exit(1, 0);
    CHECK(refusal_of(table.write(command->id(), "more", false)) == ErrorCode::kConflict);
}

TEST_CASE("a signal goes to the group of a command that runs", "[process][table]") {
    TableFixture fixture;
    auto& table = fixture.fake.table;
    const auto command = fixture.fake.start_one();
    REQUIRE(table.signal(command->id(), SIGINT).has_value());
    CHECK(fixture.fake.signals.back() == std::pair(sandbox::WorkerId{1}, SIGINT));
    CHECK(fixture.fake.wakes == 2);
    CHECK(refusal_of(table.signal("prc_0", SIGINT)) == ErrorCode::kNotFound);
    fixture.fake.exit(1, 0);
    CHECK(refusal_of(table.signal(command->id(), SIGINT)) == ErrorCode::kConflict);
    CHECK(fixture.fake.signals.size() == 1);
}

TEST_CASE("a command that is removed is killed, and forgotten when it has ended", "[process]") {
    TableFixture fixture;
    auto& table = fixture.fake.table;
    const auto command = fixture.fake.start_one();
    REQUIRE(table.remove(command->id()).has_value());
    CHECK(fixture.fake.signals.back() == std::pair(sandbox::WorkerId{1}, SIGKILL));
    CHECK(table.find(command->id()) == command);
    table.on_worker_exit({1, true, SIGKILL, {}});
    CHECK(table.find(command->id()) == nullptr);
    CHECK(refusal_of(table.remove(command->id())) == ErrorCode::kNotFound);
    const auto other = fixture.fake.start_one();
    fixture.fake.exit(2, 0);
    CHECK(table.find(other->id()) == other);
    REQUIRE(table.remove(other->id()).has_value());
    CHECK(table.find(other->id()) == nullptr);
    CHECK(fixture.fake.signals.size() == 1);
}

TEST_CASE("as many commands run as may, and no more", "[process][table]") {
    TableFixture fixture;
    for (std::size_t i = 0; i < kCommandsMax; ++i) {
        (void)fixture.fake.start_one();
    }
    const auto over = fixture.fake.start({{"/bin/cat"}, {}, {}, false, {}});
    REQUIRE(over.has_error());
    CHECK(over.error().code() == ErrorCode::kLimitExceeded);
    fixture.fake.exit(1, 0);
    (void)fixture.fake.start_one();
}

TEST_CASE("the last commands that ended are remembered", "[process][table]") {
    TableFixture fixture;
    std::vector<std::string> ids;
    for (std::size_t i = 0; i <= kEndedCommandsMax; ++i) {
        ids.push_back(fixture.fake.start_one()->id());
        fixture.fake.exit(static_cast<sandbox::WorkerId>(i + 1), 0);
    }
    CHECK(fixture.fake.table.list().size() == kEndedCommandsMax);
    CHECK(fixture.fake.table.find(ids.front()) == nullptr);
    CHECK(fixture.fake.table.find(ids[1]) != nullptr);
    CHECK(fixture.fake.table.find(ids.back()) != nullptr);
}

TEST_CASE("what cannot be started is refused, and nothing is left of it", "[process][table]") {
    TableFixture fixture;
    CommandOrder order{{"/bin/cat"}, {}, {}, true, {}};
    auto code = ErrorCode::kSystem;
    SECTION("no process is left of the session's") {
        fixture.fake.fails = Error::from_errno(EAGAIN, "fork");
        code = ErrorCode::kLimitExceeded;
    }
    SECTION("pid 1 does not take it") {
        fixture.fake.refuses = Error(ErrorCode::kUnavailable, "full");
        code = ErrorCode::kUnavailable;
    }
    SECTION("the step fails") {
        fixture.fake.fails = Error::from_errno(ENOENT, "exec");
    }
    SECTION("there is too much text") {
        order.argv.emplace_back(sandbox::kStartTextBytesMax, 'x');
        code = ErrorCode::kInvalidArgument;
    }
    SECTION("the session has ended") {
        fixture.fake.table.close();
        code = ErrorCode::kConflict;
    }
    const auto refused = fixture.fake.start(order);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == code);
    CHECK(fixture.fake.table.list().empty());
}

TEST_CASE("a start that pid 1 has not answered ends with its session", "[process][table]") {
    TableFixture fixture;
    fixture.fake.answers = false;
    const CommandOrder order{{"/bin/cat"}, {}, {}, true, {}};
    bool refused = false;
    boost::asio::co_spawn(
        fixture.io,
        [&]() -> boost::asio::awaitable<void> {
            const auto started = co_await fixture.fake.table.start(order);
            refused = started.has_error() && started.error().code() == ErrorCode::kConflict;
        },
        [](const std::exception_ptr& thrown) { REQUIRE_FALSE(thrown); });
    fixture.fake.poll();
    CHECK(fixture.fake.table.running() == 1);
    CHECK_FALSE(refused);
    fixture.fake.table.close();
    fixture.fake.poll();
    CHECK(refused);
}

TEST_CASE("a command that ends before its start is answered has started", "[process][table]") {
    TableFixture fixture;
    fixture.fake.answers = false;
    CHECK(fixture.fake.start({{"/bin/true"}, {}, {}, false, {}}).has_error());
    fixture.fake.exit(1, 0);
    fixture.fake.answer();
    REQUIRE(fixture.fake.table.list().size() == 1);
    CHECK(fixture.fake.table.list()[0]->end().has_value());
}

TEST_CASE("a flood is read in portions, and nothing of it is lost", "[process][table]") {
    TableFixture fixture;
    const auto command = fixture.fake.start_one();
    const std::string piece(4096, 'x');
    const int out = fixture.fake.specs[0].stdout_fd.get();
    REQUIRE(set_nonblocking(out).has_value());
    std::uint64_t written = 0;
    while (written < 4 * kOutputBytesPerPeriod) {
        if (::write(out, piece.data(), piece.size()) > 0) {
            written += piece.size();
        } else {
            fixture.io.restart();
            REQUIRE(fixture.io.run_one() == 1);  // a read, or the end of a pause
        }
    }
    while (command->output().total() < written) {
        fixture.io.restart();
        REQUIRE(fixture.io.run_one() == 1);
    }
    CHECK(command->output().total() == written);
}

TEST_CASE("a period's output is one portion of all commands together", "[process][table]") {
    OutputRation ration;
    const OutputRation::Time start(std::chrono::hours(1));
    CHECK_FALSE(ration.take(kOutputBytesPerPeriod - 1, start).has_value());
    CHECK(ration.take(1, start) == OutputRation::Time::duration(kOutputPeriod));
    CHECK(ration.take(1, start + kOutputPeriod / 2) == kOutputPeriod / 2);
    CHECK_FALSE(ration.take(1, start + kOutputPeriod).has_value());
    CHECK_FALSE(ration.take(kOutputBytesPerPeriod - 2, start + kOutputPeriod).has_value());
    CHECK(ration.take(1, start + kOutputPeriod).has_value());
}

}  // namespace
}  // namespace cellkeep::process
