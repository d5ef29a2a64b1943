// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/result.hpp"

#include <catch2/catch.hpp>

#include <cerrno>
#include <memory>
#include <set>
#include <string>

using cellkeep::Error;
using cellkeep::ErrorCode;
using cellkeep::Result;
using cellkeep::Status;
using cellkeep::with_context;

namespace {

Result<int> fail() {
    return Error::from_errno(EPERM, "mount(/proc)").with_hint("run as root");
}

Result<int> try_it() {
    BOOST_OUTCOME_TRY(const int value, with_context(fail(), "start session s1"));
    return value + 1;
}

}  // namespace

TEST_CASE("an error names operation, object and reason", "[support][result]") {
    const auto error = Error::from_errno(EPERM, "mount(/proc)");
    CHECK(error.code() == ErrorCode::kSystem);
    CHECK(error.errno_value() == EPERM);
    CHECK(error.message() == "mount(/proc): Operation not permitted");
    CHECK(error.hint().empty());
}

TEST_CASE("each layer puts its view in front and keeps the rest", "[support][result]") {
    const auto result = with_context(try_it(), "request 7");
    REQUIRE(result.has_error());
    CHECK(
        result.error().message() ==
        "request 7: start session s1: mount(/proc): Operation not permitted");
    CHECK(result.error().hint() == "run as root");
    CHECK(result.error().errno_value() == EPERM);
    CHECK(result.error().code() == ErrorCode::kSystem);
}

TEST_CASE("a success passes through with_context", "[support][result]") {
    CHECK(with_context(Result<int>(5), "context").value() == 5);
    CHECK(with_context(Status(cellkeep::ok()), "context").has_value());
    auto owner = with_context(Result<std::unique_ptr<int>>(std::make_unique<int>(3)), "context");
    REQUIRE(owner.has_value());
    CHECK(*owner.value() == 3);
}

TEST_CASE("an error of a Status has no errno unless a call failed", "[support][result]") {
    const Status status = Error(ErrorCode::kNotFound, "session s9: no such session");
    REQUIRE(status.has_error());
    CHECK(status.error().errno_value() == 0);
    CHECK(status.error().message() == "session s9: no such session");
}

TEST_CASE("an error about a part of the input names it", "[support][result]") {
    const Error error =
        Error::in_field(ErrorCode::kInvalidArgument, "sha256", "the file's is: 0", "Ask for that.");
    CHECK(error.field() == "sha256");
    CHECK(error.message() == "sha256: the file's is: 0");
    CHECK(error.reason() == "the file's is: 0");
    CHECK(error.hint() == "Ask for that.");

    const Error of_file = Error(error).within_field("files/0");
    CHECK(of_file.field() == "files/0/sha256");
    CHECK(of_file.message() == "files/0/sha256: the file's is: 0");
    const Error in_context = Error(of_file).with_context("create session");
    CHECK(in_context.field() == "files/0/sha256");
    CHECK(in_context.reason() == "the file's is: 0");
}

TEST_CASE("an error without a field is about the part that it is put into", "[support][result]") {
    const Error plain(ErrorCode::kNotFound, "sha256: looks like a field, but is text");
    CHECK(plain.field().empty());
    CHECK(plain.reason() == plain.message());
    const Error of_file = Error(plain).within_field("files/3");
    CHECK(of_file.field() == "files/3");
    CHECK(of_file.reason() == plain.message());
    CHECK(of_file.code() == ErrorCode::kNotFound);
    CHECK(Error::from_errno(ENOENT, "open").within_field("files/3").errno_value() == ENOENT);
}

TEST_CASE("every code has its own stable name", "[support][result]") {
    std::set<std::string> names;
    for (int code = 0; code <= static_cast<int>(ErrorCode::kSystem); ++code) {
        names.emplace(to_string(static_cast<ErrorCode>(code)));
    }
    CHECK(
        names == std::set<std::string>{
                     "invalid_argument",
                     "not_found",
                     "conflict",
                     "permission_denied",
                     "limit_exceeded",
                     "unavailable",
                     "timeout",
                     "cancelled",
                     "protocol",
                     "system"});
    CHECK(to_string(ErrorCode::kInvalidArgument) == "invalid_argument");
    CHECK(to_string(ErrorCode::kSystem) == "system");
}
