// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/process/command_input.hpp"

#include "protocol/support/syscall.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace cellkeep::process {
namespace {

struct InputFixture {
    InputFixture() {
        (void)::signal(SIGPIPE, SIG_IGN);  // as the server does
        auto pipe = make_pipe();
        REQUIRE(pipe.has_value());
        REQUIRE(set_nonblocking(pipe.value().write_end.get()).has_value());
        REQUIRE(set_nonblocking(pipe.value().read_end.get()).has_value());
        reader = std::move(pipe.value().read_end);
        auto created = CommandInput::create(io, std::move(pipe.value().write_end));
        REQUIRE(created.has_value());
        input = created.value();
    }
    ~InputFixture() { input->close(); }
    InputFixture(const InputFixture&) = delete;
    InputFixture& operator=(const InputFixture&) = delete;

    void poll() {
        io.restart();
        (void)io.poll();
    }
    /// What is there now. ended: with the end of file.
    std::string read(bool& ended) {
        std::string text;
        std::string buffer(65'536, '\0');
        ssize_t got = 0;
        while ((got = ::read(reader.get(), buffer.data(), buffer.size())) > 0) {
            text.append(buffer, 0, static_cast<std::size_t>(got));
            poll();
        }
        ended = got == 0;
        return text;
    }

    boost::asio::io_context io;
    UniqueFd reader;
    std::shared_ptr<CommandInput> input;
};

TEST_CASE("a command reads what it is sent, then the end", "[process][input]") {
    InputFixture fixture;
    bool ended = true;
    REQUIRE(fixture.input->write("one\n").has_value());
    REQUIRE(fixture.input->write("two\n").has_value());
    CHECK(fixture.read(ended) == "one\ntwo\n");
    CHECK_FALSE(ended);
    fixture.input->finish();
    CHECK(fixture.input->is_finished());
    CHECK(fixture.read(ended).empty());
    CHECK(ended);
    const Status late = fixture.input->write("three");
    REQUIRE(late.has_error());
    CHECK(late.error().code() == ErrorCode::kConflict);
    fixture.input->finish();
}

TEST_CASE("what waits for a command is bounded, and all of it comes", "[process][input]") {
    InputFixture fixture;
    const auto room = static_cast<std::size_t>(::fcntl(fixture.reader.get(), F_GETPIPE_SZ));
    REQUIRE(fixture.input->write(std::string(room, 'p')).has_value());
    CHECK(fixture.input->waiting() == 0);
    REQUIRE(fixture.input->write(std::string(kInputBytesMax - 1, 'q')).has_value());
    CHECK(fixture.input->waiting() == kInputBytesMax - 1);
    const Status over = fixture.input->write("rs");
    REQUIRE(over.has_error());
    CHECK(over.error().code() == ErrorCode::kLimitExceeded);
    REQUIRE(fixture.input->write("r").has_value());
    CHECK(fixture.input->waiting() == kInputBytesMax);
    fixture.input->finish();
    bool ended = false;
    const std::string all = fixture.read(ended);
    CHECK(all.size() == room + kInputBytesMax);
    CHECK(all.ends_with("qr"));
    CHECK(ended);
}

TEST_CASE("input for a command that reads no more is refused", "[process][input]") {
    InputFixture fixture;
    SECTION("after the reader has gone") {
        fixture.reader.reset();
    }
    SECTION("while something waits for it") {
        const auto room = static_cast<std::size_t>(::fcntl(fixture.reader.get(), F_GETPIPE_SZ));
        REQUIRE(fixture.input->write(std::string(room + 1, 'p')).has_value());
        fixture.reader.reset();
        fixture.poll();
    }
    const Status refused = fixture.input->write("x");
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kConflict);
    CHECK(fixture.input->waiting() == 0);
}

}  // namespace
}  // namespace cellkeep::process
