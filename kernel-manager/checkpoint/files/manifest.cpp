// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/files/manifest.hpp"

#include <algorithm>
#include <iterator>

namespace cellkeep::checkpoint {

namespace {

FileChange::Facts facts_of(const KeptFile& file) {
    return {file.kind, file.mode, file.bytes};
}

}  // namespace

std::string_view to_string(Unkept why) {
    switch (why) {
        case Unkept::kKind:
            return "kind";
        case Unkept::kFileBytes:
            return "file_bytes";
        case Unkept::kSpace:
            return "space";
        case Unkept::kUnreadable:
            return "unreadable";
        case Unkept::kChanging:
            return "changing";
    }
    return "unreadable";
}

std::string_view to_string(Change change) {
    switch (change) {
        case Change::kCreated:
            return "created";
        case Change::kModified:
            return "modified";
        case Change::kMode:
            return "mode";
        case Change::kDeleted:
            return "deleted";
    }
    return "modified";
}

bool lacks_space(const Manifest& manifest) {
    return std::any_of(manifest.unkept.begin(), manifest.unkept.end(), [](const auto& unkept) {
        return unkept.second == Unkept::kSpace;
    });
}

bool are_alike(const KeptFile& one, const KeptFile& other) {
    return one.kind == other.kind && one.mode == other.mode && one.bytes == other.bytes &&
           one.content == other.content;
}

bool are_alike(const Manifest& one, const Manifest& other) {
    // What is not kept may have changed. What has no contents to keep has none to change.
    const bool is_whole = std::all_of(one.unkept.begin(), one.unkept.end(), [](const auto& each) {
        return each.second == Unkept::kKind;
    });
    if (!one.complete || !other.complete || !is_whole || one.unkept != other.unkept) {
        return false;
    }
    return std::equal(
        one.files.begin(),
        one.files.end(),
        other.files.begin(),
        other.files.end(),
        [](const auto& a, const auto& b) {
            return a.first == b.first && are_alike(a.second, b.second);
        });
}

std::optional<Change> find_change(const KeptFile* earlier, const KeptFile* later) {
    if (earlier == nullptr && later == nullptr) {
        return std::nullopt;
    }
    if (earlier == nullptr) {
        return Change::kCreated;
    }
    if (later == nullptr) {
        return Change::kDeleted;
    }
    if (are_alike(*earlier, *later)) {
        return std::nullopt;
    }
    KeptFile same_mode = *later;
    same_mode.mode = earlier->mode;
    return are_alike(*earlier, same_mode) ? Change::kMode : Change::kModified;
}

FileChange describe_change(
    const std::string& path, const KeptFile* earlier, const KeptFile* later) {
    FileChange change{
        path, find_change(earlier, later).value_or(Change::kModified), std::nullopt, std::nullopt};
    if (earlier != nullptr) {
        change.before = facts_of(*earlier);
    }
    if (later != nullptr) {
        change.after = facts_of(*later);
    }
    return change;
}

FileChanges compare(const Manifest& earlier, const Manifest& later, const ChangesPage& page) {
    FileChanges changes;
    changes.complete =
        earlier.complete && later.complete && earlier.unkept.empty() && later.unkept.empty();
    auto before = earlier.files.upper_bound(page.after);
    auto after = later.files.upper_bound(page.after);
    while (before != earlier.files.end() || after != later.files.end()) {
        const bool gone = after == later.files.end() ||
                          (before != earlier.files.end() && before->first < after->first);
        const bool made = before == earlier.files.end() ||
                          (after != later.files.end() && after->first < before->first);
        const std::string& path = gone ? before->first : after->first;
        const KeptFile* const was = made ? nullptr : &before->second;
        const KeptFile* const is = gone ? nullptr : &after->second;
        // One that is there and could not be kept has neither come nor gone.
        const bool unknown =
            (gone && later.unkept.contains(path)) || (made && earlier.unkept.contains(path));
        if (!unknown && find_change(was, is)) {
            if (changes.list.size() >= page.limit) {
                changes.more = true;
                break;
            }
            changes.list.push_back(describe_change(path, was, is));
        }
        before = made ? before : std::next(before);
        after = gone ? after : std::next(after);
    }
    return changes;
}

}  // namespace cellkeep::checkpoint
