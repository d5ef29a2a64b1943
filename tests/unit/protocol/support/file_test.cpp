// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/syscall.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

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

TEST_CASE("what is left of an open file is read up to a bound", "[support][file]") {
    const TemporaryDirectory directory;
    const std::string whole = "12345" + std::string(150'000, 'x');
    REQUIRE(write_file_atomically(directory.file("f"), whole, 0600).has_value());
    const auto opened = [&directory] {
        auto file = cellkeep::open_file(directory.file("f"), O_RDONLY);
        REQUIRE(file.has_value());
        return std::move(file).value();
    };
    CHECK(cellkeep::read_to_end(opened().get(), whole.size()).value() == whole);
    const auto part = opened();
    REQUIRE(::lseek(part.get(), 5, SEEK_SET) == 5);
    CHECK(cellkeep::read_to_end(part.get(), 150'000).value() == whole.substr(5));
    CHECK(cellkeep::read_to_end(part.get(), 0).value().empty());  // it is at its end
    for (const std::size_t bound : {whole.size() - 1, std::size_t{65536}, std::size_t{0}}) {
        CAPTURE(bound);
        const auto refused = cellkeep::read_to_end(opened().get(), bound);
        REQUIRE(refused.has_error());
        CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
        CHECK(refused.error().message() == "longer than " + std::to_string(bound) + " bytes");
    }
    const auto zeros = cellkeep::open_file("/dev/zero", O_RDONLY);
    CHECK(
        cellkeep::read_to_end(zeros.value().get(), 100'000).error().code() ==
        ErrorCode::kLimitExceeded);
    const auto folder = cellkeep::open_file(directory.path(), O_RDONLY);
    CHECK(cellkeep::read_to_end(folder.value().get(), 5).error().errno_value() == EISDIR);
    CHECK(cellkeep::read_to_end(-1, 5).error().errno_value() == EBADF);
}

TEST_CASE("pieces of a file are handed on until one is not taken", "[support][file]") {
    const TemporaryDirectory directory;
    const std::string whole(150'000, 'x');
    REQUIRE(write_file_atomically(directory.file("f"), whole, 0600).has_value());
    const auto pieces = [&](std::uint64_t bytes_max, bool fails) {
        const auto file = cellkeep::open_file(directory.file("f"), O_RDONLY);
        std::string taken;
        const auto done = cellkeep::read_in_pieces(
            file.value().get(), bytes_max, [&](std::string_view piece) -> cellkeep::Status {
                taken += piece;
                return fails
                           ? cellkeep::Status(cellkeep::Error(ErrorCode::kConflict, "not this one"))
                           : cellkeep::Status(cellkeep::ok());
            });
        return std::pair(done, taken);
    };
    CHECK(pieces(whole.size(), false).first.has_value());
    CHECK(pieces(whole.size(), false).second == whole);
    const auto [beyond, before_it] = pieces(whole.size() - 1, false);
    CHECK(beyond.error().code() == ErrorCode::kLimitExceeded);
    CHECK(before_it.size() < whole.size());
    const auto [stopped, first] = pieces(whole.size(), true);
    CHECK(stopped.error().code() == ErrorCode::kConflict);
    CHECK_FALSE(first.empty());
    CHECK(first.size() < whole.size());
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
