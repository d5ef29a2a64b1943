// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/syscall.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <string>

using Catch::Matchers::Contains;
using cellkeep::ErrorCode;
using cellkeep::read_file;
using cellkeep::write_file_atomically;
using cellkeep::test::TemporaryDirectory;

TEST_CASE("a file is written whole, with its mode, and replaced", "[support][file]") {
    const TemporaryDirectory directory;
    const std::string path = directory.file("f");
    REQUIRE(write_file_atomically(path, "one", 0600).has_value());
    REQUIRE(write_file_atomically(path, std::string(200'000, 'x'), 0600).has_value());
    CHECK(read_file(path, 200'000).value() == std::string(200'000, 'x'));
    struct stat status {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777U) == 0600U);
    CHECK(directory.entry_count() == 1);
}

TEST_CASE("a write that fails leaves no temporary file", "[support][file]") {
    const TemporaryDirectory directory;
    // rename(2) cannot put a file in a directory's place.
    REQUIRE(::mkdir(directory.file("taken").c_str(), 0700) == 0);
    const auto written = write_file_atomically(directory.file("taken"), "bytes", 0600);
    REQUIRE(written.has_error());
    CHECK(written.error().code() == ErrorCode::kSystem);
    CHECK(written.error().errno_value() == EISDIR);
    CHECK_THAT(written.error().message(), Contains("rename("));
    CHECK(directory.entry_count() == 1);
    CHECK(write_file_atomically(directory.file("none/f"), "bytes", 0600).has_error());
    CHECK(directory.entry_count() == 1);
}

TEST_CASE("read_file reads up to its bound and no further", "[support][file]") {
    const TemporaryDirectory directory;
    const std::string path = directory.file("f");
    REQUIRE(write_file_atomically(path, "12345", 0600).has_value());
    CHECK(read_file(path, 5).value() == "12345");
    const auto refused = read_file(path, 4);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
    // An endless file ends at the bound too.
    CHECK(read_file("/dev/zero", 100'000).error().code() == ErrorCode::kLimitExceeded);
    CHECK(read_file(directory.file("none"), 5).error().errno_value() == ENOENT);
    CHECK(read_file(directory.path(), 5).error().errno_value() == EISDIR);
}

TEST_CASE("a control file is written, never created", "[support][file]") {
    const TemporaryDirectory directory;
    const auto missing = cellkeep::write_control_file(directory.file("none"), "1");
    REQUIRE(missing.has_error());
    CHECK(missing.error().errno_value() == ENOENT);
    CHECK(directory.entry_count() == 0);
    REQUIRE(write_file_atomically(directory.file("f"), "0", 0600).has_value());
    REQUIRE(cellkeep::write_control_file(directory.file("f"), "1").has_value());
    CHECK(read_file(directory.file("f"), 10).value() == "1");
}

TEST_CASE("a record is read whole or not at all", "[support][file]") {
    auto pipe = cellkeep::make_pipe();
    REQUIRE(pipe.has_value());
    REQUIRE(cellkeep::write_all(pipe.value().write_end.get(), "abcdef").has_value());
    pipe.value().write_end.reset();
    std::array<std::byte, 4> record{};
    REQUIRE(cellkeep::read_exactly(pipe.value().read_end.get(), record).has_value());
    CHECK(record[3] == std::byte{'d'});
    const auto rest = cellkeep::read_exactly(pipe.value().read_end.get(), record);
    REQUIRE(rest.has_error());
    CHECK(rest.error().code() == ErrorCode::kProtocol);
}

TEST_CASE("writing to a closed pipe is an error, not a signal", "[support][file]") {
    auto pipe = cellkeep::make_pipe(O_NONBLOCK);
    REQUIRE(pipe.has_value());
    pipe.value().read_end.reset();
    const auto written = cellkeep::write_all(pipe.value().write_end.get(), "x");
    REQUIRE(written.has_error());
    CHECK(written.error().errno_value() == EPIPE);
}

TEST_CASE("random_hex is lower-case, of the asked size, and differs", "[support][random]") {
    const auto first = cellkeep::random_hex(256);
    const auto second = cellkeep::random_hex(256);
    REQUIRE(first.has_value());
    REQUIRE(second.has_value());
    CHECK(first.value().size() == 512);
    CHECK(first.value().find_first_not_of("0123456789abcdef") == std::string::npos);
    CHECK(first.value() != second.value());
    CHECK(cellkeep::random_hex(0).value().empty());
}
