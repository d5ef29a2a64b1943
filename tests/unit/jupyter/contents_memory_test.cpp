// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/contents/contents_memory.hpp"

#include "kernel-manager/jupyter/rest/contents/limits.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace cellkeep::jupyter::test {
namespace {

TEST_CASE("answers with files hold a bounded memory, each principal a part of it", "[contents]") {
    ContentsMemory memory;
    auto first = memory.claim("ada", limits::kContentsPrincipalBytesMax);
    REQUIRE(first.has_value());
    const auto refused = memory.claim("ada", 1);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kUnavailable);
    CHECK(memory.claim("bob", 1).has_value());

    first.value().reset();
    CHECK(memory.held() == 0);
    CHECK(memory.claim("ada", 1).has_value());
}

TEST_CASE("all principals together hold a bounded memory", "[contents]") {
    ContentsMemory memory;
    std::vector<ContentsMemory::Claim> held;
    for (std::size_t i = 0; memory.held() < limits::kContentsHeldBytesMax; ++i) {
        auto claim = memory.claim("p" + std::to_string(i), limits::kContentsPrincipalBytesMax);
        REQUIRE(claim.has_value());
        held.push_back(std::move(claim).value());
    }
    CHECK(memory.claim("one more", 1).has_error());
    held.pop_back();
    CHECK(memory.claim("one more", 1).has_value());
}

TEST_CASE("a claim outlives the book that it is in, and an empty one is none", "[contents]") {
    ContentsMemory::Claim claim;
    {
        ContentsMemory memory;
        claim = memory.claim("ada", 7).value();
        CHECK(memory.claim("ada", 0).value() == nullptr);
        CHECK(memory.claim("ada", 0).value() == nullptr);
        CHECK(memory.held() == 7);
    }
    claim.reset();
}

}  // namespace
}  // namespace cellkeep::jupyter::test
