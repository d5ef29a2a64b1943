// SPDX-License-Identifier: Apache-2.0
#include "protocol/frame.hpp"
#include "protocol/limits.hpp"
#include "tests/support/kernel_client.hpp"

#include <catch2/catch.hpp>

#include <sys/wait.h>

#include <csignal>
#include <filesystem>

using cellkeep::protocol::encode_link_prefix;
using cellkeep::test::KernelClient;
using cellkeep::test::KernelStart;
using cellkeep::test::Messages;
using cellkeep::test::only;
using nlohmann::json;

namespace {

int exit_code(int status) {
    REQUIRE(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/// encode_link_prefix refuses to make it.
std::string prefix_past_the_limit() {
    std::string bytes;
    std::size_t value = cellkeep::limits::kFrameBytesMax + 1;
    for (std::size_t index = 0; index < cellkeep::protocol::kLinkPrefixBytes; ++index) {
        bytes.push_back(static_cast<char>(value & 0xFFU));
        value >>= 8U;
    }
    return bytes;
}

bool contains(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a closed link ends the kernel with 0", "[kernel][process]") {
    KernelClient kernel;
    (void)kernel.execute(
        "import threading\nthreading.Thread(target=threading.Event().wait).start()");
    kernel.close_link();
    CHECK(exit_code(kernel.wait_for_end()) == 0);
    CHECK(kernel.read_stderr().empty());
}

TEST_CASE("a link that closes inside a frame is a protocol error", "[kernel][process]") {
    KernelClient kernel;
    (void)kernel.request("kernel_info_request", json::object());
    const std::string bytes = GENERATE(
        as<std::string>(), std::string("\x10", 1), encode_link_prefix(100) + "not all of it");
    kernel.send_bytes(bytes);
    kernel.close_link();
    CHECK(exit_code(kernel.wait_for_end()) == 65);
    CHECK(contains(kernel.read_stderr(), "closed inside a frame"));
}

TEST_CASE("bytes that are no frame end the kernel with a message", "[kernel][process]") {
    KernelClient kernel;
    (void)kernel.request("kernel_info_request", json::object());
    const std::string bytes = GENERATE(
        as<std::string>(),
        std::string(4, '\0'),
        prefix_past_the_limit(),
        encode_link_prefix(4) + "abcd",
        encode_link_prefix(64) + std::string(64, '\xff'));
    kernel.send_bytes(bytes);
    CHECK(exit_code(kernel.wait_for_end()) == 65);
    CHECK(contains(kernel.read_stderr(), "kernel link"));
}

TEST_CASE(
    "without a link, an environment or its packages the kernel says what is missing",
    "[kernel][process]") {
    {
        KernelClient kernel({.with_link = false});
        CHECK(exit_code(kernel.wait_for_end()) == 64);
        CHECK(contains(kernel.read_stderr(), "descriptor 3"));
    }
    {
        KernelClient kernel({.environment = ""});
        CHECK(exit_code(kernel.wait_for_end()) == 64);
        CHECK(contains(kernel.read_stderr(), "CELLKEEP_ENVIRONMENT"));
    }
    {
        KernelClient kernel({.environment = "/nonexistent"});
        CHECK(exit_code(kernel.wait_for_end()) == 64);
        CHECK(contains(kernel.read_stderr(), "/nonexistent"));
    }
}

TEST_CASE("os._exit and a crash really end the process", "[kernel][process]") {
    {
        KernelClient kernel;
        (void)kernel.start("import os\nos._exit(7)");
        CHECK(exit_code(kernel.wait_for_end()) == 7);
    }
    {
        KernelClient kernel;
        (void)kernel.start("import ctypes\nctypes.string_at(0)");
        const int status = kernel.wait_for_end();
        REQUIRE(WIFSIGNALED(status));
        CHECK(WTERMSIG(status) == SIGSEGV);
    }
}

TEST_CASE(
    "a session leaves nothing in its directories but what the user wrote", "[kernel][process]") {
    KernelClient kernel;
    (void)kernel.execute("import matplotlib.pyplot as plt\nplt.plot([1]);\n%history\n2");
    (void)kernel.execute("%%bash\ntrue");
    CHECK(std::filesystem::is_empty(kernel.directory()));
}

TEST_CASE("programs that a cell starts do not hold the link", "[kernel][process]") {
    KernelClient kernel;
    (void)kernel.execute(
        "import subprocess\np = subprocess.Popen(['sleep', '1000'], close_fds=False)");
    (void)kernel.start("import os\nos._exit(0)");
    while (kernel.receive().has_value()) {
    }
    SUCCEED("the link closed although the child lives");
}
