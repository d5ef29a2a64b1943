// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/start_reply.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>

#include <cerrno>
#include <utility>

namespace cellkeep::sandbox {
namespace {

const AskedStart kAsked{3, 9, "/bin/program", "/workspace/here"};

InitChannel::Reply reply_with(int error, SetupStep step, bool with_pidfd = false) {
    InitChannel::Reply reply{{kAsked.sequence, error, step}, {}};
    if (with_pidfd) {
        reply.fds.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    return reply;
}

Error error_of(InitChannel::Reply reply) {
    auto worker = read_start_reply(kAsked, std::move(reply));
    REQUIRE(worker.has_error());
    return std::move(worker).error();
}

TEST_CASE("a reply with a pidfd is a worker", "[start]") {
    const auto worker = read_start_reply(kAsked, reply_with(0, SetupStep::kServe, true));
    REQUIRE(worker.has_value());
    CHECK(worker.value().id == 9);
    CHECK(worker.value().pidfd);
}

TEST_CASE("a reply with an error names what did not work", "[start]") {
    const Error missing = error_of(reply_with(ENOENT, SetupStep::kExec));
    CHECK(missing.errno_value() == ENOENT);
    CHECK_THAT(missing.message(), Catch::Contains("(/bin/program)"));
    const Error directory = error_of(reply_with(EACCES, SetupStep::kWorkerDirectory));
    CHECK(directory.errno_value() == EACCES);
    CHECK_THAT(directory.message(), Catch::Contains("(/workspace/here)"));
    const Error full = error_of(reply_with(EAGAIN, SetupStep::kDecodeStart));
    CHECK(full.errno_value() == EAGAIN);
    CHECK_THAT(full.message(), !Catch::Contains("program"));
}

TEST_CASE("what was killed and lives makes a start unavailable", "[start]") {
    CHECK(error_of(reply_with(EBUSY, SetupStep::kServe)).code() == ErrorCode::kUnavailable);
    // The same number from another step is that step's failure.
    CHECK(error_of(reply_with(EBUSY, SetupStep::kExec)).errno_value() == EBUSY);
}

TEST_CASE("a reply without a pidfd is not one", "[start]") {
    CHECK(error_of(reply_with(0, SetupStep::kServe)).code() == ErrorCode::kProtocol);
}

}  // namespace
}  // namespace cellkeep::sandbox
