// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/output_buffer.hpp"

#include "tests/unit/kernels/link_pair.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>

namespace cellkeep::kernels {

using nlohmann::json;

namespace {

std::size_t thread_count() {
    std::size_t threads = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator("/proc/self/task")) {
        ++threads;
    }
    return threads;
}

json stream(const char* name, const std::string& text) {
    return {{"name", name}, {"text", text}};
}

/// For a child that may start no thread: returns 0 if the writer must flush and no signal is
/// blocked.
int write_without_threads(OutputBuffer& output) {
    constexpr uid_t kNobody = 65534;  // RLIMIT_NPROC does not hold for root.
    const rlimit none{0, 0};
    if (::setrlimit(RLIMIT_NPROC, &none) != 0 || (::geteuid() == 0 && ::setuid(kNobody) != 0)) {
        return 2;
    }
    for (int write = 0; write < 2; ++write) {
        if (output.write(StreamName::kStdout, "x") != AfterWrite::kFlush) {
            return 3;
        }
        output.flush();
    }
    sigset_t blocked{};
    if (::pthread_sigmask(SIG_SETMASK, nullptr, &blocked) != 0 || ::sigismember(&blocked, SIGINT)) {
        return 4;
    }
    return 0;
}

}  // namespace

TEST_CASE("a line is due at once, the next one within the delay is not", "[kernels][output]") {
    LinkPair pair;
    OutputBuffer output(pair.outbox);
    output.begin_cell();
    CHECK(output.write(StreamName::kStdout, "") == AfterWrite::kNothing);
    CHECK(output.write(StreamName::kStdout, "a") == AfterWrite::kNothing);
    CHECK(output.write(StreamName::kStdout, "\n") == AfterWrite::kFlush);
    output.flush();
    CHECK(pair.sent_content() == stream("stdout", "a\n"));
    output.end_cell();
}

TEST_CASE("writes join in their order, streams apart", "[kernels][output]") {
    LinkPair pair;
    OutputBuffer output(pair.outbox);
    (void)output.write(StreamName::kStdout, "a");
    (void)output.write(StreamName::kStdout, "b");
    (void)output.write(StreamName::kStderr, "c");
    (void)output.write(StreamName::kStdout, "d");
    output.flush();
    CHECK(pair.sent_content() == stream("stdout", "ab"));
    CHECK(pair.sent_content() == stream("stderr", "c"));
    CHECK(pair.sent_content() == stream("stdout", "d"));
}

TEST_CASE("kOutputBytes are due, one fewer are not", "[kernels][output]") {
    LinkPair pair;
    OutputBuffer output(pair.outbox);
    output.begin_cell();
    CHECK(
        output.write(StreamName::kStdout, std::string(kOutputBytes - 1, 'x')) ==
        AfterWrite::kNothing);
    CHECK(output.write(StreamName::kStdout, "x") == AfterWrite::kFlush);
    output.end_cell();
    CHECK(pair.sent_content()["text"].get<std::string>().size() == kOutputBytes);
}

TEST_CASE("half a line is sent after its own delay without further calls", "[kernels][output]") {
    LinkPair pair;
    OutputBuffer output(pair.outbox);
    output.begin_cell();
    const auto written = std::chrono::steady_clock::now();
    CHECK(output.write(StreamName::kStderr, "working…") == AfterWrite::kNothing);
    CHECK(pair.sent_content() == stream("stderr", "working…"));  // Blocks until it comes.
    CHECK(std::chrono::steady_clock::now() - written >= kLineDelay);
    output.end_cell();
    CHECK(thread_count() == 1);
}

TEST_CASE("a second line is sent after the delay without further calls", "[kernels][output]") {
    LinkPair pair;
    OutputBuffer output(pair.outbox);
    output.begin_cell();
    REQUIRE(output.write(StreamName::kStdout, "a\n") == AfterWrite::kFlush);
    output.flush();
    if (output.write(StreamName::kStdout, "b\n") == AfterWrite::kFlush) {
        output.flush();  // on a machine that is busy enough the delay is over
    }
    CHECK(pair.sent_content() == stream("stdout", "a\n"));
    CHECK(pair.sent_content() == stream("stdout", "b\n"));  // Blocks until it comes.
    output.end_cell();
}

TEST_CASE("if no thread can start, the writer flushes and signals stay open", "[kernels][output]") {
    LinkPair pair;
    OutputBuffer output(pair.outbox);
    output.begin_cell();
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(write_without_threads(output));
    }
    REQUIRE(child > 0);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) == 0);
    CHECK(pair.sent_content() == stream("stdout", "x"));
    CHECK(pair.sent_content() == stream("stdout", "x"));
}

TEST_CASE("end_cell sends what is held and leaves one thread", "[kernels][output]") {
    LinkPair pair;
    OutputBuffer output(pair.outbox);
    for (int cell = 0; cell < 100; ++cell) {
        output.begin_cell();
        (void)output.write(StreamName::kStdout, "x");
        output.end_cell();
        CHECK(pair.sent_content() == stream("stdout", "x"));
        CHECK(thread_count() == 1);
    }
}

TEST_CASE("between cells the writer must schedule, once", "[kernels][output]") {
    LinkPair pair;
    OutputBuffer output(pair.outbox);
    output.begin_cell();
    (void)output.write(StreamName::kStdout, "line\n");
    output.end_cell();
    (void)pair.sent();
    CHECK(output.write(StreamName::kStdout, "a") == AfterWrite::kSchedule);
    CHECK(output.write(StreamName::kStdout, "b") == AfterWrite::kNothing);
    output.flush();
    CHECK(pair.sent_content() == stream("stdout", "ab"));
    CHECK(thread_count() == 1);
}

TEST_CASE("text past kStreamTextBytesMax is cut between characters", "[kernels][output]") {
    LinkPair pair;
    OutputBuffer output(pair.outbox);
    const std::string character = "€";  // three bytes
    std::string text = "x";             // so that the limit falls inside a character
    while (text.size() <= kStreamTextBytesMax) {
        text += character;
    }
    (void)output.write(StreamName::kStdout, text);
    std::thread flusher([&] { output.flush(); });
    const auto first = pair.sent_content()["text"].get<std::string>();
    const auto second = pair.sent_content()["text"].get<std::string>();
    flusher.join();
    CHECK(first.size() <= kStreamTextBytesMax);
    CHECK(first.size() > kStreamTextBytesMax - character.size());
    CHECK(first + second == text);
}

}  // namespace cellkeep::kernels
