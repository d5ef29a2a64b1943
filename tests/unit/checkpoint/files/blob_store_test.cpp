// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/files/blob_store.hpp"

#include "protocol/sha256.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

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

}  // namespace
}  // namespace cellkeep::checkpoint
