// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/files/merge_plan.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace cellkeep::checkpoint {

namespace {

using sandbox::EntryKind;
using Files = std::map<std::string, KeptFile>;

/// Empty at the top.
std::string parent_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

const KeptFile* find_file(const Files& files, const std::string& path) {
    const auto found = files.find(path);
    return found == files.end() ? nullptr : &found->second;
}

std::optional<KeptFile> copy_of(const KeptFile* file) {
    return file == nullptr ? std::nullopt : std::optional(*file);
}

bool is_directory(const KeptFile* file) {
    return file != nullptr && file->kind == EntryKind::kDirectory;
}

/// Goes through one of the manifests beside the others.
struct Reader {
    Files::const_iterator at;
    Files::const_iterator end;

    bool before(const std::string* path) const {
        return at != end && (path == nullptr || at->first < *path);
    }
    const KeptFile* take(const std::string& path) {
        return at != end && at->first == path ? &(at++)->second : nullptr;
    }
};

class MergePlanner {
 public:
    MergePlanner(const MergeSides& sides, const MergeOrder& order)
        : sides_(sides),
          wanted_(order.paths.begin(), order.paths.end()),
          base_(std::make_shared<Manifest>()) {}

    MergePlan make() {
        base_->complete = sides_.base.complete;
        base_->unkept = sides_.base.unkept;
        Reader base{sides_.base.files.begin(), sides_.base.files.end()};
        Reader ours{sides_.ours.files.begin(), sides_.ours.files.end()};
        Reader theirs{sides_.theirs.files.begin(), sides_.theirs.files.end()};
        for (;;) {
            const std::string* path = nullptr;
            for (const Reader* one : {&base, &ours, &theirs}) {
                path = one->before(path) ? &one->at->first : path;
            }
            if (path == nullptr) {
                break;
            }
            consider(*path, {base.take(*path), ours.take(*path), theirs.take(*path)});
        }
        look_at_unkept();
        std::set_difference(
            wanted_.begin(),
            wanted_.end(),
            matched_.begin(),
            matched_.end(),
            std::back_inserter(plan_.unmatched));
        plan_.base = std::move(base_);
        return std::move(plan_);
    }

 private:
    struct Versions {
        const KeptFile* base;
        const KeptFile* here;
        const KeptFile* branch;
    };

    void consider(const std::string& path, const Versions& file) {
        // What the base could not keep, the branch never had.
        const bool unknown = sides_.base.unkept.contains(path);
        if (sides_.theirs.unkept.contains(path) || !find_change(file.base, file.branch) ||
            !is_wanted(path)) {
            look_at_own(path, file);
            remember(path, file.base);
            return;
        }
        if (!find_change(file.here, file.branch) && !sides_.ours.unkept.contains(path)) {
            remember(path, file.branch);  // both have done the same
            base_->unkept.erase(path);
            return;
        }
        const bool unread = sides_.ours.unkept.contains(path);
        if (unread || unknown || find_change(file.base, file.here)) {
            add_conflict(path, file);
        }
        if (unread) {
            plan_.skipped.emplace(path, sides_.ours.unkept.at(path));
            remember(path, file.base);
            return;
        }
        if (file.branch != nullptr) {
            make_way(path);
        }
        add_step(path, file.here, file.branch);
    }

    /// A file that the branch does not know, in a directory that the branch has removed.
    void look_at_own(const std::string& path, const Versions& file) {
        if (file.here == nullptr || file.base != nullptr || file.branch != nullptr ||
            !loses_directory(path)) {
            return;
        }
        plan_.conflicts.emplace(path, MergeConflict{path, Change::kCreated, Change::kDeleted});
        add_step(path, file.here, nullptr);
    }

    bool loses_directory(const std::string& path) const {
        const auto parent = plan_.steps.find(parent_of(path));
        return parent != plan_.steps.end() &&
               (!parent->second.want || !is_directory(&*parent->second.want));
    }

    /// The directories that a file of the branch is in.
    void make_way(const std::string& path) {
        const std::string parent = parent_of(path);
        const KeptFile* const here = find_file(sides_.ours.files, parent);
        if (parent.empty() || plan_.steps.contains(parent) || is_directory(here)) {
            return;
        }
        const KeptFile* const base = find_file(sides_.base.files, parent);
        const KeptFile* const branch = find_file(sides_.theirs.files, parent);
        if (here != nullptr || base != nullptr) {
            add_conflict(parent, {base, here, branch});
        }
        make_way(parent);
        add_step(parent, here, branch);
    }

    void add_step(const std::string& path, const KeptFile* here, const KeptFile* branch) {
        plan_.steps.emplace(path, MergeStep{copy_of(here), copy_of(branch)});
        base_->unkept.erase(path);
        base_->files.erase(path);
        remember(path, branch);
    }

    void add_conflict(const std::string& path, const Versions& file) {
        plan_.conflicts.emplace(
            path,
            MergeConflict{
                path, find_change(file.base, file.here), find_change(file.base, file.branch)});
    }

    void look_at_unkept() {
        for (const auto& [path, why] : sides_.theirs.unkept) {
            if (is_wanted(path)) {
                plan_.skipped.emplace(path, why);
            }
        }
        for (const auto& [path, why] : sides_.ours.unkept) {
            if (loses_directory(path)) {
                plan_.conflicts.emplace(path, MergeConflict{path, std::nullopt, Change::kDeleted});
            }
        }
    }

    /// It, or a directory that it is in, is among the order's paths.
    bool is_wanted(const std::string& path) {
        bool found = wanted_.empty();
        for (std::string one = path; !wanted_.empty() && !one.empty(); one = parent_of(one)) {
            if (wanted_.contains(one)) {
                matched_.insert(one);
                found = true;
            }
        }
        return found;
    }

    void remember(const std::string& path, const KeptFile* file) {
        if (file != nullptr) {
            base_->files.emplace(path, *file);
        }
    }

    const MergeSides& sides_;
    const std::set<std::string> wanted_;
    std::set<std::string> matched_;
    std::shared_ptr<Manifest> base_;
    MergePlan plan_;
};

}  // namespace

MergePlan plan_merge(const MergeSides& sides, const MergeOrder& order) {
    return MergePlanner(sides, order).make();
}

}  // namespace cellkeep::checkpoint
