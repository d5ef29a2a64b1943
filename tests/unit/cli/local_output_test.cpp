// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/exec/local_output.hpp"

#include "protocol/support/syscall.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <array>
#include <string>
#include <thread>

namespace cellkeep::cli {
namespace {

constexpr std::size_t kMoreThanAPipeHolds = 4U << 20U;

std::string read_to_end(int fd) {
    std::string text;
    std::array<char, 4096> chunk{};
    ssize_t got = 0;
    while ((got = ::read(fd, chunk.data(), chunk.size())) > 0) {
        text.append(chunk.data(), static_cast<std::size_t>(got));
    }
    return text;
}

TEST_CASE("what is shown arrives whole, whether or not the descriptor blocks", "[cli][exec]") {
    const bool blocks = GENERATE(true, false);
    CAPTURE(blocks);
    auto pipe = make_pipe();
    REQUIRE(pipe.has_value());
    if (!blocks) {
        REQUIRE(set_nonblocking(pipe.value().write_end.get()).has_value());
    }
    const std::string text(kMoreThanAPipeHolds, 'x');
    std::string read;
    std::thread reader([&] { read = read_to_end(pipe.value().read_end.get()); });
    show_all(pipe.value().write_end.get(), text + "end");
    pipe.value().write_end.reset();
    reader.join();
    CHECK(read.size() == text.size() + 3);
    CHECK(read.ends_with("xend"));
}

TEST_CASE("what nobody reads any more is not waited for", "[cli][exec]") {
    auto pipe = make_pipe();
    REQUIRE(pipe.has_value());
    const bool blocks = GENERATE(true, false);
    if (!blocks) {
        REQUIRE(set_nonblocking(pipe.value().write_end.get()).has_value());
    }
    pipe.value().read_end.reset();
    show_all(pipe.value().write_end.get(), std::string(kMoreThanAPipeHolds, 'x'));
    SUCCEED();
}

}  // namespace
}  // namespace cellkeep::cli
