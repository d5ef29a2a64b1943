// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/process/terminal.hpp"

#include "protocol/support/syscall.hpp"
#include "tests/unit/process/fake_commands.hpp"

#include <catch2/catch.hpp>

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <string>

namespace cellkeep::process {
namespace {

CommandOrder with_terminal() {
    CommandOrder order{{"/bin/sh"}, {}, {}, false, {}};
    order.terminal = CommandOrder::Terminal{{30, 100}, "vt100"};
    return order;
}

winsize size_of(const UniqueFd& fd) {
    winsize size{};
    REQUIRE(::ioctl(fd.get(), TIOCGWINSZ, &size) == 0);
    return size;
}

std::string read_side(const UniqueFd& fd) {
    std::string text(4096, '\0');
    const ssize_t got = ::read(fd.get(), text.data(), text.size());
    return text.substr(0, got > 0 ? static_cast<std::size_t>(got) : 0);
}

TEST_CASE("a terminal is a pair with a size", "[process][terminal]") {
    auto pair = make_terminal({30, 100});
    REQUIRE(pair.has_value());
    CHECK(::isatty(pair.value().terminal.get()) == 1);
    CHECK(size_of(pair.value().terminal).ws_row == 30);
    CHECK(size_of(pair.value().terminal).ws_col == 100);
    REQUIRE(set_terminal_size(pair.value().controller.get(), {kTerminalSideMax, kTerminalSideMax})
                .has_value());
    CHECK(size_of(pair.value().terminal).ws_col == kTerminalSideMax);
    REQUIRE(::write(pair.value().terminal.get(), "out\n", 4) == 4);
    pollfd watched{pair.value().controller.get(), POLLIN, 0};
    REQUIRE(::poll(&watched, 1, -1) == 1);
    CHECK(read_side(pair.value().controller) == "out\r\n");
    CHECK(set_terminal_size(-1, {1, 1}).has_error());
}

TEST_CASE("a command with a terminal has nothing else", "[process][terminal]") {
    boost::asio::io_context io;
    test::FakeCommands fake(io);
    const auto command = fake.start_one(with_terminal());
    const sandbox::WorkerSpec& spec = fake.specs.at(0);
    REQUIRE(spec.terminal_fd);
    CHECK_FALSE(spec.stdin_fd);
    CHECK_FALSE(spec.stdout_fd);
    CHECK_FALSE(spec.stderr_fd);
    CHECK(spec.env.back() == "TERM=vt100");
    CHECK(size_of(spec.terminal_fd).ws_row == 30);
    CHECK(command->info().terminal->columns == 100);
    CHECK(command->info().input_open);
    REQUIRE(fake.table.resize(command->id(), {40, 120}).has_value());
    CHECK(size_of(spec.terminal_fd).ws_row == 40);
    CHECK(command->info().terminal->rows == 40);
    REQUIRE(fake.table.write(command->id(), "line\n", true).has_value());
    CHECK(read_side(spec.terminal_fd) == "line\n");
    CHECK(read_side(spec.terminal_fd).empty());  // the end of file
    CHECK(command->info().input_open);
}

TEST_CASE("what a terminal holds at the end is kept, and then it is hung up", "[process]") {
    boost::asio::io_context io;
    test::FakeCommands fake(io);
    const auto command = fake.start_one(with_terminal());
    const int terminal = fake.specs[0].terminal_fd.get();
    const std::string text(8000, 'x');
    REQUIRE(::write(terminal, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    fake.exit(1, 0);
    CHECK(command->output().total() == text.size());
    CHECK(::write(terminal, "more", 4) < 0);
    CHECK(errno == EIO);
    CHECK(fake.table.resize(command->id(), {1, 1}).has_error());
}

TEST_CASE("as many terminals are open as may be, and no more", "[process][terminal]") {
    boost::asio::io_context io;
    test::FakeCommands fake(io);
    for (std::size_t i = 0; i < kTerminalsMax; ++i) {
        (void)fake.start_one(with_terminal());
    }
    const auto over = fake.start(with_terminal());
    REQUIRE(over.has_error());
    CHECK(over.error().code() == ErrorCode::kLimitExceeded);
    const auto plain = fake.start_one();
    const auto refused = fake.table.resize(plain->id(), {1, 1});
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kConflict);
    CHECK(fake.table.resize("prc_0", {1, 1}).error().code() == ErrorCode::kNotFound);
    fake.exit(1, 0);
    (void)fake.start_one(with_terminal());
}

}  // namespace
}  // namespace cellkeep::process
