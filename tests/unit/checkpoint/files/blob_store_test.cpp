// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/files/blob_store.hpp"

#include "protocol/sha256.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace cellkeep::checkpoint {
namespace {

using protocol::sha256_hex;

struct BlobFixture {
    test::TemporaryDirectory disk;
    std::shared_ptr<BlobSpace> space = std::make_shared<BlobSpace>(disk.path(), 20'000);
    BlobStore store{space, 10'000};

    std::string add(const std::string& bytes) {
        REQUIRE(store.begin(bytes.size()).has_value());
        REQUIRE(store.append(bytes).has_value());
        std::string digest = sha256_hex(bytes);
        REQUIRE(store.finish(digest).has_value());
        return digest;
    }
    std::string read(const std::string& digest, std::uint64_t offset = 0) const {
        std::string into(20'000, '?');
        const auto got = store.read(digest, offset, into);
        return got.has_value() ? into.substr(0, got.value()) : "nothing";
    }
};

TEST_CASE("contents are there until their last holder drops them", "[blobs]") {
    BlobFixture fixture;
    const std::string one = fixture.add("one");
    const std::string long_one = fixture.add(std::string(5000, 'x') + "end");
    CHECK(fixture.disk.entry_count() == 0);  // a file without a name
    CHECK(fixture.read(one) == "one");
    CHECK(fixture.read(long_one, 5000) == "end");
    CHECK(fixture.read(long_one, 5003).empty());
    CHECK(fixture.read(long_one, 6000).empty());
    CHECK(fixture.store.bytes() == 5006);
    CHECK(fixture.add("one") == one);
    CHECK(fixture.store.bytes() == 5006);
    fixture.store.drop(one);
    CHECK(fixture.read(one) == "one");
    fixture.store.hold(one);
    fixture.store.drop(one);
    fixture.store.drop(one);
    CHECK_FALSE(fixture.store.contains(one));
    CHECK(fixture.read(one) == "nothing");
    CHECK(fixture.store.bytes() == 5003);
    fixture.store.drop(long_one);
    CHECK(fixture.store.bytes() == 0);
    CHECK(fixture.read(fixture.add("again")) == "again");
}

TEST_CASE("zeros and nothing are contents, too", "[blobs]") {
    BlobFixture fixture;
    const std::string zeros = fixture.add(std::string(4096, '\0'));
    const std::string empty = fixture.add("");
    const std::string after = fixture.add("after");
    CHECK(fixture.read(zeros) == std::string(4096, '\0'));
    CHECK(fixture.read(empty).empty());
    CHECK(fixture.read(after) == "after");
    fixture.store.drop(empty);
    CHECK(fixture.read(zeros) == std::string(4096, '\0'));
}

TEST_CASE("what goes in the middle of a blob that comes takes nothing of it along", "[blobs]") {
    BlobFixture fixture;
    const std::string first = fixture.add("first");
    const std::string last = fixture.add("last");
    REQUIRE(fixture.store.begin(6).has_value());
    REQUIRE(fixture.store.append("com").has_value());
    fixture.store.drop(last);
    fixture.store.drop(first);
    REQUIRE(fixture.store.append("ing").has_value());
    REQUIRE(fixture.store.finish(sha256_hex("coming")).has_value());
    CHECK(fixture.read(sha256_hex("coming")) == "coming");
    CHECK(fixture.store.bytes() == 6);
}

TEST_CASE("what is abandoned leaves nothing", "[blobs]") {
    BlobFixture fixture;
    REQUIRE(fixture.store.begin(10'000).has_value());
    REQUIRE(fixture.store.append(std::string(9000, 'x')).has_value());
    fixture.store.abandon();
    CHECK(fixture.store.bytes() == 0);
    const std::string zeros = fixture.add(std::string(9000, '\0'));
    CHECK(fixture.read(zeros) == std::string(9000, '\0'));
}

TEST_CASE("a session's bytes and those of all sessions are bounded", "[blobs]") {
    BlobFixture fixture;
    CHECK(fixture.store.begin(10'001).error().code() == ErrorCode::kLimitExceeded);
    const std::string first = fixture.add(std::string(10'000, 'x'));
    CHECK(fixture.store.begin(1).error().code() == ErrorCode::kLimitExceeded);
    fixture.store.drop(first);
    (void)fixture.add(std::string(10'000, 'y'));
    {
        BlobStore other(fixture.space, 15'000);
        CHECK(other.begin(10'001).error().code() == ErrorCode::kLimitExceeded);
        CHECK(other.begin(10'000).has_value());
    }
    BlobStore third(fixture.space, 15'000);
    CHECK(third.begin(10'000).has_value());  // the other one has given back what it took
    CHECK(kStoredBytesMax <= kSpaceBytesMax);
}

TEST_CASE("a directory that is not there is the host's fault", "[blobs]") {
    BlobStore store(std::make_shared<BlobSpace>("/does/not/exist"));
    CHECK(store.begin(1).error().code() == ErrorCode::kUnavailable);
}

/// Of two contents, in a space that is not used by anything else.
PassedBlobs passed_blobs(std::string& one, std::string& other) {
    BlobFixture before;
    one = before.add(std::string(5000, 'x') + "end");
    other = before.add("other");
    return before.store.pass_on();
}

TEST_CASE("contents pass to another store with their room", "[blobs][passing]") {
    BlobFixture before;
    const std::string gone = before.add("gone");
    const std::string long_one = before.add(std::string(5000, 'x') + "end");
    const std::string empty = before.add("");
    const std::string last = before.add("last");
    before.store.drop(gone);
    before.store.drop(last);
    PassedBlobs passed = before.store.pass_on();
    CHECK(before.store.bytes() == 0);
    CHECK(before.space->take(20'000));
    before.space->give_back(20'000);
    CHECK(before.read(long_one) == "nothing");
    BlobFixture after;
    REQUIRE(after.store.go_on(std::move(passed)).has_value());
    CHECK(after.store.bytes() == 5003);
    CHECK_FALSE(after.space->take(20'000 - 5002));
    CHECK(after.read(long_one, 5000) == "end");
    CHECK(after.read(empty).empty());
    CHECK(after.store.bytes_of(long_one) == 5003);
    CHECK(after.store.bytes_of(empty) == 0);
    CHECK_FALSE(after.store.bytes_of(gone).has_value());
    CHECK_FALSE(after.store.are_all_held());
    after.store.hold(long_one);
    after.store.hold(empty);
    CHECK(after.store.are_all_held());
    // What comes lies behind it, and what goes makes room again.
    const std::string next = after.add("next");
    CHECK(after.read(long_one, 5000) == "end");
    CHECK(after.read(next) == "next");
    after.store.drop(long_one);
    after.store.drop(empty);
    CHECK(after.read(next) == "next");
    after.store.drop(next);
    CHECK(after.store.bytes() == 0);
    CHECK(after.space->take(20'000));
}

TEST_CASE("a store that never had anything passes nothing", "[blobs][passing]") {
    BlobFixture before;
    PassedBlobs passed = before.store.pass_on();
    CHECK_FALSE(passed.file);
    BlobFixture after;
    REQUIRE(after.store.go_on(std::move(passed)).has_value());
    CHECK(after.store.bytes() == 0);
    CHECK(after.read(after.add("first")) == "first");
}

TEST_CASE("as much passes as a session keeps, and not one byte more", "[blobs][passing]") {
    for (const std::uint64_t more : {std::uint64_t{0}, std::uint64_t{1}}) {
        std::string one;
        std::string other;
        PassedBlobs passed = passed_blobs(one, other);
        passed.bytes = 10'000 + more;
        BlobFixture after;
        CHECK(after.store.go_on(std::move(passed)).has_value() == (more == 0));
    }
}

TEST_CASE("contents that cannot be in their file are refused", "[blobs][passing]") {
    std::string one;
    std::string other;
    PassedBlobs passed = passed_blobs(one, other);
    const std::string digest(64, 'a');
    SECTION("no file") {
        passed.file.reset();
    }
    SECTION("a directory") {
        passed.file = UniqueFd(::open("/", O_RDONLY | O_CLOEXEC | O_DIRECTORY));
    }
    SECTION("a file that is shorter") {
        REQUIRE(::ftruncate(passed.file.get(), 4096) == 0);
    }
    SECTION("behind the file") {
        passed.blobs[other].offset = 1ULL << 40U;
    }
    SECTION("an offset that overflows") {
        passed.blobs[other].offset = UINT64_MAX - 4095;
    }
    SECTION("a length that overflows") {
        passed.blobs[other].bytes = UINT64_MAX;
    }
    SECTION("in the middle of a block") {
        passed.blobs[other].offset += 1;
    }
    SECTION("at the place of another one") {
        passed.blobs[other].offset = passed.blobs[one].offset;
    }
    SECTION("within another one") {
        passed.blobs[other].offset = passed.blobs[one].offset + 4096;
    }
    SECTION("more than was counted") {
        passed.bytes = 1;
    }
    SECTION("a name that is no digest") {
        passed.blobs.emplace("x", passed.blobs[other]);
    }
    SECTION("a name with other letters") {
        passed.blobs.emplace(std::string(64, 'G'), PassedBlobs::Blob{});
    }
    SECTION("an empty one in the middle of a block") {
        passed.blobs.emplace(digest, PassedBlobs::Blob{1, 0});
    }
    BlobFixture after;
    const Status taken = after.store.go_on(std::move(passed));
    REQUIRE(taken.has_error());
    CHECK(taken.error().code() == ErrorCode::kProtocol);
    CHECK(after.store.bytes() == 0);
    CHECK(after.read(after.add("first")) == "first");
}

}  // namespace
}  // namespace cellkeep::checkpoint
