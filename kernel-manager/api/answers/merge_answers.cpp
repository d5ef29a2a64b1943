// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/merge_answers.hpp"

#include "kernel-manager/api/bodies/merge_body.hpp"
#include "kernel-manager/http/message/problem.hpp"

#include <optional>
#include <string_view>
#include <utility>

namespace cellkeep::api {

namespace {

using checkpoint::FileChange;
using checkpoint::MergeAnswer;
using Facts = std::optional<FileChange::Facts>;

std::string_view text_of(sandbox::EntryKind kind) {
    switch (kind) {
        case sandbox::EntryKind::kDirectory:
            return "directory";
        case sandbox::EntryKind::kLink:
            return "link";
        case sandbox::EntryKind::kFile:
        case sandbox::EntryKind::kOther:
            break;
    }
    return "file";
}

/// As chmod(1) takes it.
nlohmann::json mode_json(const Facts& facts) {
    if (!facts) {
        return nullptr;
    }
    std::string digits;
    for (const unsigned shift : {9U, 6U, 3U, 0U}) {
        digits += static_cast<char>('0' + ((facts->mode >> shift) & 7U));
    }
    return digits;
}

nlohmann::json change_json(const FileChange& change) {
    const Facts& shown = change.after ? change.after : change.before;
    return {
        {"path", change.path},
        {"change", to_string(change.what)},
        {"kind", shown ? text_of(shown->kind) : "file"},
        {"bytes", change.after ? change.after->bytes : 0},
        {"bytes_before", change.before ? change.before->bytes : 0},
        {"mode", mode_json(change.after)},
        {"mode_before", mode_json(change.before)}};
}

nlohmann::json changes_json(const std::vector<FileChange>& changes) {
    nlohmann::json list = nlohmann::json::array();
    for (const FileChange& one : changes) {
        list.push_back(change_json(one));
    }
    return list;
}

nlohmann::json conflicts_json(const MergeAnswer& answer) {
    const auto name = [](const std::optional<checkpoint::Change>& change) {
        return change ? nlohmann::json(to_string(*change)) : nlohmann::json(nullptr);
    };
    nlohmann::json list = nlohmann::json::array();
    for (const checkpoint::MergeConflict& one : answer.conflicts) {
        list.push_back(
            {{"path", one.path}, {"here", name(one.here)}, {"branch", name(one.branch)}});
    }
    return list;
}

nlohmann::json failure_json(const MergeAnswer::Failure& failure) {
    return {{"path", failure.path}, {"reason", failure.why}};
}

nlohmann::json merged_json(const MergeAnswer& answer, const std::string& from) {
    nlohmann::json skipped = nlohmann::json::array();
    for (const MergeAnswer::Skipped& one : answer.skipped) {
        skipped.push_back({{"path", one.path}, {"reason", to_string(one.why)}});
    }
    return {
        {"from", from},
        {"files", changes_json(answer.changes)},
        {"file_count", answer.change_count},
        {"overruled", conflicts_json(answer)},
        {"overruled_count", answer.conflict_count},
        {"skipped", std::move(skipped)},
        {"skipped_count", answer.skipped_count},
        {"unmatched", answer.unmatched}};
}

http::Problem conflict_problem(const MergeAnswer& answer) {
    http::Problem problem = http::make_problem(
        409,
        "merge-conflict",
        "Both have changed the same",
        std::to_string(answer.conflict_count) +
            " of the files that the branch has changed are not as they were when it was made. "
            "Nothing was done. \"force\": true takes the branch's, and \"paths\" only some.");
    problem.extensions = {
        {"conflicts", conflicts_json(answer)}, {"conflict_count", answer.conflict_count}};
    return problem;
}

http::Problem failure_problem(const MergeAnswer& answer) {
    const bool undone = answer.outcome == MergeAnswer::Outcome::kUndone;
    const MergeAnswer::Failure failed = answer.failure.value_or(MergeAnswer::Failure{});
    std::string detail = failed.path + ": " + failed.why + ". ";
    detail += undone ? "What was done before is undone: all files are as they were."
                     : std::to_string(answer.left_count) +
                           " files could not be put back; \"left\" names them.";
    http::Problem problem =
        http::make_problem(409, "merge-failed", "The files could not be taken", std::move(detail));
    nlohmann::json left = nlohmann::json::array();
    for (const MergeAnswer::Failure& one : answer.left) {
        left.push_back(failure_json(one));
    }
    problem.extensions = {
        {"failed", failure_json(failed)},
        {"undone", undone},
        {"left", std::move(left)},
        {"left_count", answer.left_count}};
    return problem;
}

}  // namespace

nlohmann::json to_json(const checkpoint::FileChanges& changes) {
    nlohmann::json next = nullptr;
    if (changes.more && !changes.list.empty()) {
        next = make_path_cursor(changes.list.back().path);
    }
    return {
        {"files", changes_json(changes.list)},
        {"complete", changes.complete},
        {"next", std::move(next)}};
}

http::Response answer_merge(const checkpoint::MergeAnswer& answer, const std::string& from) {
    switch (answer.outcome) {
        case MergeAnswer::Outcome::kDone:
            return http::make_json(200, merged_json(answer, from));
        case MergeAnswer::Outcome::kConflicts:
            return http::to_response(conflict_problem(answer));
        case MergeAnswer::Outcome::kIncomplete:
            return http::to_response(http::make_problem(
                409,
                "too-many-entries",
                "A workspace has more than can be compared",
                "The session or its branch has more files, or deeper directories, than one look "
                "takes in, or a directory that its owner may not read. Nothing was done."));
        case MergeAnswer::Outcome::kUndone:
        case MergeAnswer::Outcome::kPartly:
            break;
    }
    return http::to_response(failure_problem(answer));
}

}  // namespace cellkeep::api
