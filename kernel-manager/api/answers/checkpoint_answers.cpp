// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/checkpoint_answers.hpp"

#include "kernel-manager/checkpoint/files/blob_store.hpp"
#include "kernel-manager/checkpoint/files/manifest.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/time.hpp"

#include <utility>

namespace cellkeep::api {

namespace {

using checkpoint::Gone;
using checkpoint::NotForkable;

nlohmann::json optional_text(const std::optional<std::string>& text) {
    return text ? nlohmann::json(*text) : nlohmann::json(nullptr);
}

/// Only what is lost: [] means that nothing is.
nlohmann::json lost_json(const checkpoint::Lost& lost) {
    nlohmann::json list = nlohmann::json::array();
    const auto add = [&](const char* what, std::uint32_t count) {
        if (count > 0) {
            list.push_back({{"what", what}, {"count", count}});
        }
    };
    add("threads", lost.threads);
    add("processes", lost.children);
    add("sockets", lost.sockets);
    add("shared_mappings", lost.shared_mappings);
    return list;
}

nlohmann::json files_json(const checkpoint::FilesSummary& files) {
    nlohmann::json unkept = nlohmann::json::array();
    for (const auto& one : files.unkept) {
        unkept.push_back({{"path", one.path}, {"reason", one.reason}});
    }
    return {
        {"count", files.count},
        {"complete", files.complete},
        {"unkept_count", files.unkept_count},
        {"unkept", std::move(unkept)}};
}

/// What was done to the files of the workspace.
nlohmann::json restored_json(const checkpoint::RolledBack& back) {
    nlohmann::json failures = nlohmann::json::array();
    for (const auto& one : back.failures) {
        failures.push_back({{"path", one.path}, {"reason", one.why}});
    }
    return {
        {"written", back.files_written},
        {"removed", back.files_removed},
        {"failed_count", back.files_failed},
        {"failed", std::move(failures)}};
}

std::string advise_about_threads(const NotForkable& refused) {
    return refused.carries ? ". Ask with \"on_threads\": \"carry\" to have them go on in the copy, "
                             "or \"drop\" to lose them."
                           : ", and this interpreter's cannot go on in a copy. Ask with "
                             "\"on_threads\": \"drop\" to lose them, or end them first.";
}

std::string explain(const NotForkable& refused) {
    switch (refused.why) {
        case NotForkable::Why::kLanguage:
            return "The interpreter of this language cannot be copied.";
        case NotForkable::Why::kThreads:
            return "The interpreter has " + std::to_string(refused.count) +
                   " threads besides the one that runs cells" + advise_about_threads(refused);
        case NotForkable::Why::kThread:
            return "The thread \"" + refused.name + "\" of the interpreter could not be stopped. " +
                   "Ask again when it waits, or with \"on_threads\": \"drop\" to lose all other "
                   "threads.";
        case NotForkable::Why::kDebugger:
            return "A debugger was used in the interpreter. Restart the session.";
        case NotForkable::Why::kSystem:
            break;
    }
    return "The system refused the copy" +
           (refused.count == 0
                ? std::string(".")
                : ": " + Error::from_errno(static_cast<int>(refused.count), "fork").message() +
                      ".") +
           " The session's limits of processes and memory hold for its copies, too. A restart ends "
           "what the session runs.";
}

std::string explain(Gone gone) {
    switch (gone) {
        case Gone::kDeleted:
            return "it was deleted";
        case Gone::kEvicted:
            return "it had to go for a newer one";
        case Gone::kDied:
            return "its process has ended";
    }
    return "its process has ended";
}

}  // namespace

nlohmann::json to_json(const checkpoint::Checkpoint& one) {
    return {
        {"id", one.id},
        {"parent", optional_text(one.parent)},
        {"label", optional_text(one.label)},
        {"execution", optional_text(one.execution)},
        {"execution_count", one.execution_count},
        {"created_at", to_iso8601(one.created_at)},
        {"automatic", one.automatic},
        {"carried_threads", one.carried_threads},
        {"lost", lost_json(one.lost)},
        {"private_bytes",
         one.private_bytes ? nlohmann::json(*one.private_bytes) : nlohmann::json(nullptr)},
        {"file_bytes", one.files.bytes},
        {"files", files_json(one.files)}};
}

nlohmann::json to_json(const checkpoint::CheckpointMade& made) {
    nlohmann::json answer = to_json(made.checkpoint);
    answer["unchanged"] = made.unchanged;
    answer["evicted"] = made.evicted;
    return answer;
}

nlohmann::json to_json(const checkpoint::RolledBack& back) {
    return {
        {"lost", lost_json(back.lost)},
        {"left_as", optional_text(back.left_as)},
        {"evicted", back.evicted},
        {"files", restored_json(back)}};
}

nlohmann::json to_json(const checkpoint::CheckpointList& list) {
    nlohmann::json checkpoints = nlohmann::json::array();
    for (const checkpoint::Checkpoint& one : list.checkpoints) {
        checkpoints.push_back(to_json(one));
    }
    return {
        {"checkpoints", std::move(checkpoints)},
        {"stored_file_bytes", list.stored_bytes},
        {"limits",
         {{"checkpoints", limits::kCheckpointsMax},
          {"file_bytes", checkpoint::kKeptFileBytesMax},
          {"stored_file_bytes", checkpoint::kStoredBytesMax}}}};
}

http::Problem not_forkable(const NotForkable& refused) {
    http::Problem problem = http::make_problem(
        409, "not-forkable", "The interpreter cannot be copied now", explain(refused));
    problem.extensions = {{"reason", to_string(refused.why)}, {"count", refused.count}};
    return problem;
}

http::Problem no_checkpoint(const std::string& id, std::optional<Gone> gone) {
    if (!gone) {
        return http::make_problem(
            404,
            "unknown-checkpoint",
            "No such checkpoint",
            "The session has no checkpoint " + id + ".");
    }
    http::Problem problem = http::make_problem(
        410,
        "checkpoint-gone",
        "The checkpoint is no longer there",
        "The checkpoint " + id + " cannot be gone back to: " + explain(*gone) + ".");
    problem.extensions = {{"reason", to_string(*gone)}};
    return problem;
}

}  // namespace cellkeep::api
