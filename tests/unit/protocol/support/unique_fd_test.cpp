// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/unique_fd.hpp"

#include "protocol/support/syscall.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>

#include <utility>

using cellkeep::UniqueFd;

namespace {

bool is_open(int fd) {
    return ::fcntl(fd, F_GETFD) >= 0;
}

UniqueFd open_null() {
    auto fd = cellkeep::open_file("/dev/null", O_RDONLY);
    REQUIRE(fd.has_value());
    return std::move(fd).value();
}

}  // namespace

TEST_CASE("a descriptor is closed with its owner", "[support][fd]") {
    int number = -1;
    {
        const UniqueFd fd = open_null();
        number = fd.get();
        CHECK(is_open(number));
        // Close-on-exec, because programs that we start would inherit it otherwise.
        CHECK((::fcntl(number, F_GETFD) & FD_CLOEXEC) != 0);
    }
    CHECK_FALSE(is_open(number));
}

TEST_CASE("a move leaves nothing behind", "[support][fd]") {
    UniqueFd first = open_null();
    const int number = first.get();
    UniqueFd second = std::move(first);
    CHECK_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): the claim
    CHECK(second.get() == number);

    UniqueFd third = open_null();
    const int replaced = third.get();
    third = std::move(second);
    CHECK(third.get() == number);
    CHECK_FALSE(is_open(replaced));
    CHECK(is_open(number));
}

TEST_CASE("a move to itself keeps the descriptor", "[support][fd]") {
    UniqueFd fd = open_null();
    UniqueFd& same = fd;
    fd = std::move(same);
    REQUIRE(fd.valid());
    CHECK(is_open(fd.get()));
}

TEST_CASE("a released descriptor is the caller's", "[support][fd]") {
    UniqueFd fd = open_null();
    const int number = fd.release();
    CHECK_FALSE(static_cast<bool>(fd));
    CHECK(is_open(number));
    fd.reset(number);
    fd.reset();
    CHECK_FALSE(is_open(number));
    fd.reset();  // nothing to close is no error
    CHECK(fd.get() == -1);
}
