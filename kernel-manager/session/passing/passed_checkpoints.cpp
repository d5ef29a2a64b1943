// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/passing/passed_checkpoints.hpp"

#include "kernel-manager/session/passing/passed_manifest.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/passed_time.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace cellkeep::session {

using checkpoint::Checkpoint;
using checkpoint::CheckpointTree;
using checkpoint::Gone;
using nlohmann::json;
using std::chrono::system_clock;

namespace {

constexpr std::size_t kCheckpointIdBytes = 28;  // "ckp_" and 24 hexadecimal digits

/// What is thrown here is caught in read_checkpoints().
[[noreturn]] void refuse_checkpoint(const char* what) {
    throw json::other_error::create(503, what, nullptr);
}

template <typename T>
T number_of(const json& text, const char* name) {
    const json& value = text.at(name);
    if (!value.is_number_integer() || value.get<std::int64_t>() < std::numeric_limits<T>::min() ||
        value.get<std::int64_t>() > std::numeric_limits<T>::max()) {
        refuse_checkpoint(name);
    }
    return value.get<T>();
}

json text_or_null(const std::optional<std::string>& text) {
    return text ? json(*text) : json();
}

std::optional<std::string> optional_text(const json& text, const char* name) {
    const json& value = text.at(name);
    return value.is_null() ? std::nullopt : std::optional(value.get<std::string>());
}

std::string checked_id(std::string id) {
    if (!id.starts_with("ckp_") || id.size() != kCheckpointIdBytes) {
        refuse_checkpoint("an id that is none");
    }
    return id;
}

json write_facts(const Checkpoint& one) {
    return {
        {"id", one.id},
        {"parent", text_or_null(one.parent)},
        {"label", text_or_null(one.label)},
        {"execution", text_or_null(one.execution)},
        {"execution_count", one.execution_count},
        {"created_at", to_ticks(one.created_at)},
        {"automatic", one.automatic},
        {"carried_threads", one.carried_threads},
        {"threads", one.lost.threads},
        {"children", one.lost.children},
        {"sockets", one.lost.sockets},
        {"shared_mappings", one.lost.shared_mappings},
        {"goes_on", one.goes_on}};
}

Checkpoint read_facts(const json& text) {
    Checkpoint one;
    one.id = checked_id(text.at("id").get<std::string>());
    one.parent = optional_text(text, "parent");
    one.label = optional_text(text, "label");
    if (one.label && one.label->size() > limits::kCheckpointLabelBytesMax) {
        refuse_checkpoint("a label that is too long");
    }
    one.execution = optional_text(text, "execution");
    one.execution_count = number_of<std::int32_t>(text, "execution_count");
    one.created_at =
        from_ticks<system_clock::time_point>(number_of<std::int64_t>(text, "created_at"));
    one.automatic = text.at("automatic").get<bool>();
    one.carried_threads = number_of<std::uint32_t>(text, "carried_threads");
    one.lost.threads = number_of<std::uint32_t>(text, "threads");
    one.lost.children = number_of<std::uint32_t>(text, "children");
    one.lost.sockets = number_of<std::uint32_t>(text, "sockets");
    one.lost.shared_mappings = number_of<std::uint32_t>(text, "shared_mappings");
    one.goes_on = text.at("goes_on").get<bool>();
    return one;
}

json write_blobs(const checkpoint::PassedBlobs& blobs) {
    json all = json::object();
    for (const auto& [digest, blob] : blobs.blobs) {
        all[digest] = {blob.offset, blob.bytes};
    }
    return {{"bytes", blobs.bytes}, {"blobs", std::move(all)}};
}

std::uint64_t unsigned_of(const json& value) {
    if (!value.is_number_unsigned()) {
        refuse_checkpoint("a number that is none");
    }
    return value.get<std::uint64_t>();
}

/// BlobStore::go_on() looks at the places.
checkpoint::PassedBlobs read_blobs(const json& text, UniqueFd file) {
    checkpoint::PassedBlobs blobs;
    blobs.file = std::move(file);
    blobs.bytes = unsigned_of(text.at("bytes"));
    for (const auto& [digest, place] : text.at("blobs").items()) {
        blobs.blobs.emplace(
            digest,
            checkpoint::PassedBlobs::Blob{unsigned_of(place.at(0)), unsigned_of(place.at(1))});
    }
    return blobs;
}

json write_gone(const CheckpointTree::GoneOnes& gone) {
    json all = json::array();
    for (const auto& [id, why] : gone) {
        all.push_back({{"id", id}, {"why", static_cast<int>(why)}});
    }
    return all;
}

CheckpointTree::GoneOnes read_gone(const json& text) {
    CheckpointTree::GoneOnes gone;
    for (const json& one : text) {
        const auto why = number_of<std::int32_t>(one, "why");
        if (why < 0 || why > static_cast<int>(Gone::kDied)) {
            refuse_checkpoint("a reason that is none");
        }
        gone.emplace_back(checked_id(one.at("id").get<std::string>()), static_cast<Gone>(why));
    }
    if (gone.size() > checkpoint::kGoneKept) {
        refuse_checkpoint("too many that are gone");
    }
    return gone;
}

json write_settled(const std::optional<PassedCheckpoints::Settled>& settled) {
    return settled ? json{{"checkpoint", settled->checkpoint}, {"begun", settled->begun}} : json();
}

std::optional<PassedCheckpoints::Settled> read_settled(const json& text) {
    if (text.is_null()) {
        return std::nullopt;
    }
    return PassedCheckpoints::Settled{
        checked_id(text.at("checkpoint").get<std::string>()), unsigned_of(text.at("begun"))};
}

/// merge_base is not written if it is what the branch was made with: until the first merge.
json write_beginning(const PassedCheckpoints& passed) {
    if (!passed.begun) {
        return {};
    }
    return {
        {"files", write_manifest(*passed.begun)},
        {"merged",
         passed.merge_base && passed.merge_base != passed.begun ? write_manifest(*passed.merge_base)
                                                                : json()}};
}

/// A program of an older format writes none.
void read_beginning(const json& text, PassedCheckpoints& passed) {
    if (text.is_null()) {
        return;
    }
    passed.begun = std::make_shared<const checkpoint::Manifest>(read_manifest(text.at("files")));
    const json& merged = text.at("merged");
    passed.merge_base = merged.is_null()
                            ? passed.begun
                            : std::make_shared<const checkpoint::Manifest>(read_manifest(merged));
}

std::size_t names_of(const checkpoint::Manifest& manifest) {
    return manifest.files.size() + manifest.unkept.size();
}

/// Which of them there are fits itself.
void check_tree(const PassedCheckpoints& passed) {
    std::set<std::string> ids;
    std::size_t automatic = 0;
    std::size_t names = 0;
    for (const PassedCheckpoints::One& one : passed.all) {
        if (one.checkpoint.parent && !ids.contains(*one.checkpoint.parent)) {
            refuse_checkpoint("one that comes from none");
        }
        if (!ids.insert(one.checkpoint.id).second) {
            refuse_checkpoint("an id comes twice");
        }
        automatic += one.checkpoint.automatic ? 1 : 0;
        names += names_of(*one.files);
    }
    if (passed.begun) {
        names += names_of(*passed.begun);
        names += passed.merge_base == passed.begun ? 0 : names_of(*passed.merge_base);
    }
    if (ids.size() > limits::kCheckpointsMax || automatic > 1 || names > kPassedNamesMax) {
        refuse_checkpoint("more than a session has");
    }
    if (passed.origin && !ids.contains(*passed.origin)) {
        refuse_checkpoint("an interpreter that comes from none");
    }
}

PassedCheckpoints read_all_checkpoints(const json& text, CheckpointEnds ends) {
    PassedCheckpoints passed;
    const json& all = text.at("all");
    if (!all.is_array() || all.size() != ends.sleepers.size()) {
        refuse_checkpoint("one without its process");
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        const json& one = all.at(i);
        passed.all.push_back(
            {read_facts(one),
             std::make_shared<const checkpoint::Manifest>(read_manifest(one.at("files"))),
             PassedSleeper{
                 number_of<std::uint32_t>(one, "worker"),
                 std::move(ends.sleepers[i].pidfd),
                 std::move(ends.sleepers[i].socket),
                 number_of<std::uint32_t>(one, "sequence"),
                 one.value("prepares", false),
                 one.value("ready", false)}});
    }
    passed.origin = optional_text(text, "origin");
    passed.gone = read_gone(text.at("gone"));
    passed.settled = read_settled(text.at("settled"));
    if (const json& blobs = text.at("blobs"); !blobs.is_null()) {
        passed.blobs = read_blobs(blobs, std::move(ends.blobs));
    }
    read_beginning(text.value("began", json()), passed);
    check_tree(passed);
    return passed;
}

}  // namespace

json write_checkpoints(PassedCheckpoints& passed, CheckpointEnds& ends) {
    json all = json::array();
    for (PassedCheckpoints::One& one : passed.all) {
        json written = write_facts(one.checkpoint);
        written["files"] = write_manifest(*one.files);
        written["worker"] = one.sleeper.worker;
        written["sequence"] = one.sleeper.sequence;
        // An older program's copies know nothing of it, and it looks for neither.
        written["prepares"] = one.sleeper.prepares;
        written["ready"] = one.sleeper.ready;
        ends.sleepers.push_back({std::move(one.sleeper.pidfd), std::move(one.sleeper.socket)});
        all.push_back(std::move(written));
    }
    if (passed.blobs) {
        ends.blobs = std::move(passed.blobs->file);
    }
    return {
        {"all", std::move(all)},
        {"origin", text_or_null(passed.origin)},
        {"gone", write_gone(passed.gone)},
        {"settled", write_settled(passed.settled)},
        {"blobs", passed.blobs ? write_blobs(*passed.blobs) : json()},
        {"began", write_beginning(passed)}};
}

Result<PassedCheckpoints> read_checkpoints(const json& text, CheckpointEnds ends) {
    try {
        return read_all_checkpoints(text, std::move(ends));
    } catch (const json::exception& failure) {
        return Error(ErrorCode::kProtocol, std::string("passed checkpoints: ") + failure.what());
    }
}

}  // namespace cellkeep::session
