// SPDX-License-Identifier: Apache-2.0
//
// What one program writes of a session's checkpoints, and the next one reads or refuses.
#include "kernel-manager/session/passing/passed_checkpoints.hpp"

#include "kernel-manager/session/passing/passed_manifest.hpp"
#include "protocol/limits.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <sys/mman.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {
namespace {

using checkpoint::Gone;
using checkpoint::Manifest;
using checkpoint::Unkept;
using nlohmann::json;
using sandbox::EntryKind;

const std::string kDigest(64, 'a');

std::string checkpoint_id(char digit) {
    return "ckp_" + std::string(24, digit);
}

UniqueFd any_end() {
    return UniqueFd(::memfd_create("any", MFD_CLOEXEC));
}

Manifest any_manifest() {
    Manifest manifest;
    manifest.files = {
        {"d", {EntryKind::kDirectory, 0755, -5, 0, ""}},
        {"d/\xff.txt", {EntryKind::kFile, 0644, 7, 12, kDigest}},
        {"link", {EntryKind::kLink, 0777, 8, 3, "/etc"}}};
    manifest.unkept = {{"pipe", Unkept::kKind}, {"d/big", Unkept::kFileBytes}};
    manifest.complete = false;
    manifest.bytes = 12;
    return manifest;
}

PassedCheckpoints::One one_checkpoint(char digit) {
    PassedCheckpoints::One one;
    one.checkpoint.id = checkpoint_id(digit);
    one.checkpoint.execution_count = 5;
    one.checkpoint.created_at = std::chrono::system_clock::time_point(std::chrono::hours(500'000));
    one.checkpoint.lost = {1, 2, 3, 4};
    one.files = std::make_shared<const Manifest>(any_manifest());
    one.sleeper = {7, any_end(), any_end(), 3};
    return one;
}

PassedCheckpoints any_checkpoints() {
    PassedCheckpoints passed;
    passed.all.push_back(one_checkpoint('1'));
    passed.all[0].checkpoint.label = "first";
    passed.all.push_back(one_checkpoint('2'));
    passed.all[1].checkpoint.parent = checkpoint_id('1');
    passed.all[1].checkpoint.execution = "exe_1";
    passed.all[1].checkpoint.automatic = true;
    passed.all[1].checkpoint.goes_on = true;
    passed.all[1].checkpoint.carried_threads = 2;
    passed.origin = checkpoint_id('2');
    passed.gone = {{checkpoint_id('3'), Gone::kEvicted}, {checkpoint_id('4'), Gone::kDied}};
    passed.settled = {checkpoint_id('2'), 9};
    passed.blobs.emplace();
    passed.blobs->file = any_end();
    passed.blobs->bytes = 12;
    passed.blobs->blobs = {{kDigest, {4096, 12}}};
    passed.begun = std::make_shared<const Manifest>(any_manifest());
    Manifest merged = any_manifest();
    merged.files.erase("link");
    passed.merge_base = std::make_shared<const Manifest>(std::move(merged));
    return passed;
}

struct Written {
    json text;
    CheckpointEnds ends;
};

Written write(PassedCheckpoints passed) {
    Written written;
    const json text = write_checkpoints(passed, written.ends);
    written.text = json::from_cbor(json::to_cbor(text));
    return written;
}

bool is_refused(Written written) {
    const auto read = read_checkpoints(written.text, std::move(written.ends));
    return read.has_error() && read.error().code() == ErrorCode::kProtocol;
}

TEST_CASE("what passes of checkpoints comes as it went", "[session][passing]") {
    Written written = write(any_checkpoints());
    REQUIRE(written.ends.sleepers.size() == 2);
    const int socket = written.ends.sleepers[1].socket.get();
    const int contents = written.ends.blobs.get();
    const json text = written.text;
    auto read = read_checkpoints(text, std::move(written.ends));
    REQUIRE(read.has_value());
    PassedCheckpoints& after = read.value();
    REQUIRE(after.all.size() == 2);
    CHECK(after.all[0].checkpoint.label == "first");
    CHECK(after.all[0].checkpoint.lost == checkpoint::Lost{1, 2, 3, 4});
    CHECK(after.all[1].checkpoint.parent == checkpoint_id('1'));
    CHECK(after.all[1].checkpoint.carried_threads == 2);
    CHECK(after.all[1].sleeper.worker == 7);
    CHECK(after.all[1].sleeper.sequence == 3);
    CHECK(after.all[1].sleeper.socket.get() == socket);
    CHECK(after.all[1].files->files == any_manifest().files);
    CHECK(after.all[1].files->unkept == any_manifest().unkept);
    CHECK_FALSE(after.all[1].files->complete);
    CHECK(after.gone.back().second == Gone::kDied);
    REQUIRE(after.settled.has_value());
    CHECK(after.settled->begun == 9);
    REQUIRE(after.blobs.has_value());
    CHECK(after.blobs->file.get() == contents);
    CHECK(after.blobs->blobs.at(kDigest).offset == 4096);
    REQUIRE(after.begun);
    CHECK(after.begun->files == any_manifest().files);
    REQUIRE(after.merge_base);
    CHECK(after.merge_base->files.size() == 2);
    CHECK(write(std::move(after)).text == text);
}

TEST_CASE("a session without checkpoints passes none", "[session][passing]") {
    Written written = write({});
    CHECK(written.ends.sleepers.empty());
    CHECK_FALSE(written.ends.blobs);
    const auto read = read_checkpoints(written.text, std::move(written.ends));
    REQUIRE(read.has_value());
    CHECK(read.value().all.empty());
    CHECK_FALSE(read.value().blobs.has_value());
    CHECK_FALSE(read.value().begun);
    CHECK_FALSE(read.value().merge_base);
}

TEST_CASE("until the first merge its base is what a branch was made with", "[session][passing]") {
    PassedCheckpoints passed;
    passed.begun = std::make_shared<const Manifest>(any_manifest());
    passed.merge_base = passed.begun;
    Written written = write(std::move(passed));
    CHECK(written.text.at("began").at("merged").is_null());
    const auto read = read_checkpoints(written.text, std::move(written.ends));
    REQUIRE(read.has_value());
    CHECK(read.value().begun->files == any_manifest().files);
    CHECK(read.value().merge_base == read.value().begun);
}

TEST_CASE("an older format says nothing of what a branch was made with", "[session][passing]") {
    Written written = write({});
    written.text.erase("began");
    CHECK_FALSE(is_refused(std::move(written)));
}

TEST_CASE("as many checkpoints pass as a session has, and not one more", "[session][passing]") {
    PassedCheckpoints passed;
    for (std::size_t i = 0; i < limits::kCheckpointsMax; ++i) {
        passed.all.push_back(one_checkpoint(static_cast<char>('0' + i)));
    }
    for (std::size_t i = 0; i < checkpoint::kGoneKept; ++i) {
        passed.gone.emplace_back(checkpoint_id('g'), Gone::kDeleted);
    }
    Written full = write(std::move(passed));
    const json text = full.text;
    auto read = read_checkpoints(text, std::move(full.ends));
    REQUIRE(read.has_value());
    PassedCheckpoints more = std::move(read).value();
    SECTION("checkpoints") {
        more.all.push_back(one_checkpoint('x'));
    }
    SECTION("those that are gone") {
        more.gone.emplace_back(checkpoint_id('h'), Gone::kDeleted);
    }
    CHECK(is_refused(write(std::move(more))));
}

TEST_CASE("as many names of files pass as may, and not one more", "[session][passing]") {
    for (const std::size_t more : {std::size_t{0}, std::size_t{1}}) {
        Manifest manifest;
        for (std::size_t i = 0; i + 1 < kPassedNamesMax + more; ++i) {
            manifest.files[std::to_string(i)] = {EntryKind::kDirectory, 0755, 0, 0, ""};
        }
        manifest.unkept["socket"] = Unkept::kKind;
        const auto files = std::make_shared<const Manifest>(std::move(manifest));
        PassedCheckpoints passed;
        passed.all.push_back(one_checkpoint('1'));
        passed.all[0].files = files;
        CHECK(is_refused(write(std::move(passed))) == (more > 0));
        PassedCheckpoints branch;  // the same is counted once
        branch.begun = branch.merge_base = files;
        CHECK(is_refused(write(std::move(branch))) == (more > 0));
        PassedCheckpoints merged;
        merged.begun = std::make_shared<const Manifest>();
        merged.merge_base = files;
        CHECK(is_refused(write(std::move(merged))) == (more > 0));
    }
}

TEST_CASE("about as many bytes are counted as names take", "[session][passing]") {
    const Manifest manifest = any_manifest();
    const std::size_t written = json::to_cbor(write_manifest(manifest)).size();
    CHECK(bytes_of_names(manifest) >= written);
    CHECK(bytes_of_names(manifest) < 4 * written);
}

TEST_CASE("checkpoints of another form are refused", "[session][passing]") {
    for (const json& wrong : {json(), json(5), json("{}"), json::array(), json::object()}) {
        CAPTURE(wrong);
        Written written = write(any_checkpoints());
        written.text = wrong;
        CHECK(is_refused(std::move(written)));
    }
    const json good = write(any_checkpoints()).text.flatten();
    for (const auto& [at, value] : good.items()) {
        CAPTURE(at);
        const json::json_pointer place(at);
        Written other = write(any_checkpoints());
        other.text[place] = json::array({json::array({true})});
        CHECK(is_refused(std::move(other)));
    }
    for (const char* name : {"all", "origin", "gone", "settled", "blobs"}) {
        CAPTURE(name);
        Written without = write(any_checkpoints());
        without.text.erase(name);
        CHECK(is_refused(std::move(without)));
    }
}

TEST_CASE("checkpoints without their processes are refused", "[session][passing]") {
    Written fewer = write(any_checkpoints());
    fewer.ends.sleepers.pop_back();
    CHECK(is_refused(std::move(fewer)));
    Written more = write(any_checkpoints());
    more.ends.sleepers.push_back({any_end(), any_end()});
    CHECK(is_refused(std::move(more)));
}

TEST_CASE("values that no checkpoint has are refused", "[session][passing]") {
    constexpr std::int64_t kTooMuch = std::int64_t{std::numeric_limits<std::uint32_t>::max()} + 1;
    const std::string label(limits::kCheckpointLabelBytesMax + 1, 'a');
    const json file = {0, 0644, 7, 12, kDigest};
    const std::vector<std::pair<const char*, json>> wrong = {
        {"/all/0/id", "ckp_1"},
        {"/all/0/id", std::string(28, '1')},
        {"/all/0/id", checkpoint_id('2')},
        {"/all/0/label", label},
        {"/all/0/parent", checkpoint_id('2')},
        {"/all/1/parent", checkpoint_id('9')},
        {"/all/0/automatic", true},
        {"/all/0/execution_count", kTooMuch},
        {"/all/0/threads", -1},
        {"/all/0/threads", kTooMuch},
        {"/all/0/children", 1.5},
        {"/all/0/worker", -1},
        {"/all/0/sequence", kTooMuch},
        {"/origin", checkpoint_id('9')},
        {"/gone/0/why", 3},
        {"/gone/0/why", -1},
        {"/gone/0/id", ""},
        {"/settled/begun", -1},
        {"/settled/checkpoint", "x"},
        {"/blobs/bytes", -1},
        {"/all/0/files/bytes", -1},
        {"/all/0/files/unkept/pipe", 5},
        {"/all/0/files/unkept/pipe", -1},
        {"/all/0/files/files/link/0", 3},
        {"/all/0/files/files/link/0", -1},
        {"/all/0/files/files/link/1", 010000},
        {"/all/0/files/files/link/3", -1},
        {"/all/0/files/files/link", json::array({0, 0, 0, 0})},
        {"/began/files/files/link/1", 010000},
        {"/began/files/files", {{"../x", file}}},
        {"/began/merged/unkept/pipe", 5},
        {"/began/merged/files", {{"/etc/passwd", file}}},
        {"/all/0/files/files", {{"", file}}},
        {"/all/0/files/files", {{"/etc/passwd", file}}},
        {"/all/0/files/files", {{"..", file}}},
        {"/all/0/files/files", {{"d/../../x", file}}},
        {"/all/0/files/files", {{"d/./x", file}}},
        {"/all/0/files/files", {{"d//x", file}}},
        {"/all/0/files/files", {{"d/", file}}},
        {"/all/0/files/files", {{std::string("a\0b", 3), file}}},
        {"/all/0/files/unkept", {{"../x", 0}}}};
    for (const auto& [place, value] : wrong) {
        CAPTURE(place, value.dump(-1, ' ', true));
        Written written = write(any_checkpoints());
        written.text[json::json_pointer(place)] = value;
        CHECK(is_refused(std::move(written)));
    }
    Written plain = write(any_checkpoints());
    plain.text["all"][0]["files"]["files"] = {{"...", file}, {"a..b/.c", file}};
    CHECK_FALSE(is_refused(std::move(plain)));
}

}  // namespace
}  // namespace cellkeep::session
