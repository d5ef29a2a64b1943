// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/artifacts/artifact_collector.hpp"

#include "protocol/limits.hpp"
#include "protocol/sha256.hpp"
#include "tests/support/temporary_workspace.hpp"

#include <atomic>
#include <future>
#include <thread>

namespace cellkeep::session {
namespace {

using cellkeep::test::TemporaryWorkspace;

struct CollectorFixture {
    boost::asio::io_context io;
    std::shared_ptr<WorkThread> thread = std::make_shared<WorkThread>();
    TemporaryWorkspace files;
    std::shared_ptr<ArtifactCollector> collector =
        ArtifactCollector::create(io, thread, files.workspace());

    Artifacts collect(std::uint64_t bytes_max = 1'000'000) {
        std::optional<Artifacts> found;
        collector->finish(
            bytes_max, [&found](Artifacts artifacts) { found = std::move(artifacts); });
        io.restart();
        (void)io.run();
        REQUIRE(found.has_value());
        CHECK_FALSE(collector->busy());
        return *found;
    }
};

ArtifactDigest make_digest(
    const CollectorFixture& fixture,
    Artifacts artifacts,
    std::uint64_t bytes_max,
    bool late = false) {
    const auto now = std::chrono::steady_clock::now();
    return {
        UniqueFd(::dup(fixture.files.fd())),
        ::getuid(),
        ::getgid(),
        std::move(artifacts),
        bytes_max,
        late ? now : now + std::chrono::hours(1)};
}

TEST_CASE("an artifact has its size, digest and media type", "[artifacts]") {
    CollectorFixture fixture;
    fixture.collector->begin();
    fixture.files.write("out/plot.PNG", "picture");
    const Artifacts found = fixture.collect();
    REQUIRE(found.files.size() == 1);
    CHECK(found.files[0].path == "out/plot.PNG");
    CHECK(found.files[0].change == Artifact::Change::kCreated);
    CHECK(found.files[0].bytes == 7);
    CHECK(found.files[0].sha256 == protocol::sha256_hex("picture"));
    CHECK(found.files[0].media_type == "image/png");
    CHECK(found.complete);
    CHECK(found.hashed_bytes == 7);
}

TEST_CASE("nothing changed is answered at once", "[artifacts]") {
    CollectorFixture fixture;
    fixture.collector->begin();
    bool answered = false;
    fixture.collector->finish(1, [&answered](const Artifacts& artifacts) {
        answered = artifacts.files.empty() && artifacts.complete;
    });
    CHECK(answered);
}

TEST_CASE("an empty file has the digest of nothing", "[artifacts]") {
    CollectorFixture fixture;
    fixture.collector->begin();
    fixture.files.write("empty", "");
    CHECK(fixture.collect(0).files.at(0).sha256 == protocol::sha256_hex(""));
}

TEST_CASE("beyond the limit's bytes there is no digest, and the result says so", "[artifacts]") {
    CollectorFixture fixture;
    fixture.collector->begin();
    fixture.files.write("a", "12345");
    fixture.files.write("b", "123456");
    fixture.files.write("c", "1");
    const Artifacts found = fixture.collect(6);
    REQUIRE(found.files.size() == 3);
    CHECK_FALSE(found.files[0].sha256.empty());
    CHECK(found.files[1].sha256.empty());
    CHECK_FALSE(found.files[2].sha256.empty());  // it still fits
    ExecutionResult result;
    add_artifacts(found, result);
    CHECK(result.truncated.at("artifacts").kept == 6);
    CHECK(result.truncated.at("artifacts").total == 12);
    CHECK(result.artifacts_complete);
}

TEST_CASE("a sparse file of a terabyte costs nothing", "[artifacts]") {
    CollectorFixture fixture;
    fixture.collector->begin();
    fixture.files.write("sparse", "");
    if (::truncate(fixture.files.path("sparse").c_str(), 1LL << 40U) != 0) {
        SUCCEED("this file system has no such file");
        return;
    }
    const Artifacts found = fixture.collect();
    CHECK(found.files.at(0).bytes == 1ULL << 40U);
    CHECK(found.files.at(0).sha256.empty());
}

TEST_CASE("at most kArtifactsMax files are listed", "[artifacts]") {
    ArtifactTracker::Changes changes;
    for (std::size_t i = 0; i < limits::kArtifactsMax; ++i) {
        changes.files[std::to_string(i)] = {};
    }
    CHECK(list_artifacts(changes).complete);
    changes.files["one more"] = {};
    const Artifacts listed = list_artifacts(changes);
    CHECK(listed.files.size() == limits::kArtifactsMax);
    CHECK_FALSE(listed.complete);
}

TEST_CASE("a file that became something else has no digest", "[artifacts]") {
    const CollectorFixture fixture;
    fixture.files.write("secret", "not for you");
    Artifacts artifacts;
    for (const char* name : {"link", "fifo", "directory", "gone"}) {
        artifacts.files.push_back({name, Artifact::Change::kCreated, 4, {}, {}});
    }
    std::filesystem::create_symlink("secret", fixture.files.path("link"));
    REQUIRE(::mkfifo(fixture.files.path("fifo").c_str(), 0600) == 0);
    fixture.files.make_directory("directory");
    auto digest = make_digest(fixture, artifacts, 1000);
    while (digest.advance() == WorkThread::Slice::kMore) {
    }
    for (const Artifact& artifact : digest.take().files) {
        CAPTURE(artifact.path);
        CHECK(artifact.sha256.empty());
    }
}

TEST_CASE("a file that changes while it is read has no digest", "[artifacts]") {
    const CollectorFixture fixture;
    const std::string half(ArtifactDigest::kSliceBytes, 'x');
    fixture.files.write("f", half + half);
    Artifacts artifacts;
    artifacts.files.push_back({"f", Artifact::Change::kCreated, 2 * half.size(), {}, {}});
    const auto change = GENERATE(0, 1, 2);
    auto digest = make_digest(fixture, artifacts, 1ULL << 30U);
    REQUIRE(digest.advance() == WorkThread::Slice::kMore);
    if (change == 0) {
        fixture.files.write("f", half + half + "more");
    } else if (change == 1) {
        REQUIRE(::truncate(fixture.files.path("f").c_str(), 1) == 0);
    }
    // The guest swaps it for a link: the collector reads the file that it has opened.
    if (change == 2) {
        std::filesystem::remove(fixture.files.path("f"));
        std::filesystem::create_symlink("/etc/passwd", fixture.files.path("f"));
    }
    while (digest.advance() == WorkThread::Slice::kMore) {
    }
    CHECK(digest.take().files[0].sha256.empty());
}

TEST_CASE("past kArtifactTimeMax nothing more is read", "[artifacts]") {
    CHECK(limits::kArtifactTimeMax.count() > 0);
    const CollectorFixture fixture;
    fixture.files.write("f", "x");
    Artifacts artifacts;
    artifacts.files.push_back({"f", Artifact::Change::kCreated, 1, {}, {}});
    auto digest = make_digest(fixture, artifacts, 1000, /*late=*/true);
    CHECK(digest.advance() == WorkThread::Slice::kDone);
    CHECK(digest.take().files[0].sha256.empty());
}

TEST_CASE("a work thread that hangs delays no answer", "[artifacts]") {
    CHECK(kArtifactSlack.count() > 0);
    CollectorFixture fixture;
    std::promise<void> disk;
    fixture.thread->run([arrives = disk.get_future().share()] {
        arrives.wait();
        return WorkThread::Slice::kDone;
    });
    fixture.collector->begin();
    fixture.files.write("f", "x");
    std::optional<Artifacts> found;
    const auto keep = [&found](Artifacts artifacts) { found = std::move(artifacts); };
    fixture.collector->finish(100, keep);
    while (!found.has_value()) {
        (void)fixture.io.run_one();
    }
    CHECK(found->files.at(0).path == "f");
    CHECK(found->files.at(0).sha256.empty());
    CHECK_FALSE(fixture.collector->busy());
    // The thread gets no more work: the next answer does not even wait.
    fixture.collector->begin();
    fixture.files.write("g", "x");
    found.reset();
    fixture.collector->finish(100, keep);
    REQUIRE(found.has_value());
    CHECK(found->files.at(0).path == "g");
    // The late answer is dropped, and afterwards all is as before.
    found.reset();
    disk.set_value();
    (void)fixture.io.run();
    CHECK_FALSE(found.has_value());
    fixture.collector->begin();
    fixture.files.write("h", "x");
    CHECK_FALSE(fixture.collect().files.at(0).sha256.empty());
}

TEST_CASE("a caller that waits when the workspace goes gets what is known", "[artifacts]") {
    CollectorFixture fixture;
    fixture.collector->begin();
    fixture.files.write("f", "x");
    std::optional<Artifacts> found;
    fixture.collector->finish(100, [&found](Artifacts artifacts) { found = std::move(artifacts); });
    CHECK(fixture.collector->busy());
    fixture.collector->close();
    REQUIRE(found.has_value());
    CHECK(found->files.at(0).path == "f");
    found.reset();
    (void)fixture.io.run();
    CHECK_FALSE(found.has_value());  // answered once
    // Afterwards there is nothing to see.
    fixture.collector->begin();
    fixture.collector->finish(100, [&found](Artifacts artifacts) { found = std::move(artifacts); });
    REQUIRE(found.has_value());
    CHECK_FALSE(found->complete);
}

TEST_CASE("a work thread gives every job its turn and drops the rest at its end", "[artifacts]") {
    std::atomic<int> slices{0};
    std::atomic<bool> second{false};
    auto dropped = std::make_shared<int>(0);
    {
        WorkThread thread;
        thread.run([&slices, &second, dropped] {
            ++slices;
            return second ? WorkThread::Slice::kDone : WorkThread::Slice::kMore;
        });
        thread.run([&second] {
            second = true;
            return WorkThread::Slice::kDone;
        });
        while (!second) {
            std::this_thread::yield();
        }
        thread.run([dropped] { return WorkThread::Slice::kMore; });
    }
    CHECK(slices > 0);
    CHECK(dropped.use_count() == 1);
}

}  // namespace
}  // namespace cellkeep::session
