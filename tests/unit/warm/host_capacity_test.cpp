// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/warm/host_capacity.hpp"

#include <catch2/catch.hpp>

using cellkeep::Error;
using cellkeep::ErrorCode;
using cellkeep::session::name_full_host;

TEST_CASE("a host without room is unavailable, not broken", "[session]") {
    for (const int number : {EAGAIN, ENOMEM, EMFILE, ENFILE, ENOSPC}) {
        CAPTURE(number);
        const Error named = name_full_host(Error::from_errno(number, "memfd_create"));
        CHECK(named.code() == ErrorCode::kUnavailable);
        CHECK_THAT(named.message(), Catch::StartsWith("memfd_create: "));
        CHECK_THAT(named.hint(), Catch::Contains("try again later"));
    }
    CHECK(name_full_host(Error::from_errno(EPERM, "mount")).code() == ErrorCode::kSystem);
    CHECK(
        name_full_host(Error(ErrorCode::kInvalidArgument, "policy")).code() ==
        ErrorCode::kInvalidArgument);
}
