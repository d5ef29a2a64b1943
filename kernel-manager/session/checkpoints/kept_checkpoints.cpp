// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/checkpoints/kept_checkpoints.hpp"

#include "kernel-manager/checkpoint/private_memory.hpp"
#include "kernel-manager/session/session_setup.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/run_elsewhere.hpp"
#include "protocol/support/unique_fd.hpp"

#include <boost/asio/post.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

namespace cellkeep::session {

using checkpoint::Checkpoint;
using checkpoint::Gone;

namespace {

checkpoint::FilesSummary summarize(const checkpoint::Manifest& manifest) {
    checkpoint::FilesSummary summary{
        .count = manifest.files.size(),
        .bytes = manifest.bytes,
        .complete = manifest.complete,
        .unkept_count = manifest.unkept.size(),
        .unkept = {}};
    for (const auto& [path, why] : manifest.unkept) {
        if (summary.unkept.size() >= checkpoint::kUnkeptNamedMax) {
            break;
        }
        summary.unkept.push_back({path, std::string(to_string(why))});
    }
    return summary;
}

}  // namespace

KeptCheckpoints::Places find_places(
    const SessionSetup& setup, const sandbox::Workspace& workspace) {
    std::set<std::string> mounted;
    for (const auto& [path, name] : setup.mounted) {
        mounted.insert(path);
    }
    return {
        .workspace = workspace,
        .mounted = std::move(mounted),
        .work_thread = setup.work_thread,
        .space = setup.blob_space};
}

KeptCheckpoints::KeptCheckpoints(boost::asio::io_context& io, Places places)
    : io_(io),
      work_thread_(places.work_thread),
      keeper_(
          io,
          std::move(places.work_thread),
          std::move(places.space),
          places.workspace,
          std::move(places.mounted)),
      tree_(limits::kCheckpointsMax) {}

std::shared_ptr<SleepingCopy> KeptCheckpoints::copy_of(const std::string& id) const {
    const auto found = parts_.find(id);
    return found == parts_.end() ? nullptr : found->second.copy;
}

KeptCheckpoints::Files KeptCheckpoints::files_of(const std::string& id) const {
    const auto found = parts_.find(id);
    return found == parts_.end() ? nullptr : found->second.files;
}

void KeptCheckpoints::add(Checkpoint checkpoint, Parts parts) {
    checkpoint.files = summarize(*parts.files);
    parts_.emplace(checkpoint.id, std::move(parts));
    tree_.add(std::move(checkpoint));
}

void KeptCheckpoints::forget(const std::string& id, Gone why) {
    tree_.remove(id, why);
    if (auto gone = parts_.extract(id)) {
        if (why == Gone::kEvicted) {
            // In the next turn of the loop, so that an answer that can be written now goes out
            // first: the end of a process takes a processor for some milliseconds.
            boost::asio::post(io_, [copy = std::move(gone.mapped().copy)] { copy->close(); });
        } else {
            gone.mapped().copy->close();
        }
        forgotten_.push_back(std::move(gone.mapped().files));
    }
    if (!pinned_) {
        unpin();
    }
}

std::optional<std::string> KeptCheckpoints::find_worker(sandbox::WorkerId worker) const {
    const auto found = std::find_if(parts_.begin(), parts_.end(), [&](const auto& one) {
        return one.second.copy->worker() == worker;
    });
    return found == parts_.end() ? std::nullopt : std::optional(found->first);
}

void KeptCheckpoints::unpin() {
    pinned_ = false;
    for (Files& files : std::exchange(forgotten_, {})) {
        keeper_.drop(std::move(files));
    }
}

boost::asio::awaitable<Result<KeptCheckpoints::Files>> KeptCheckpoints::capture(
    std::string kept, std::vector<std::string>& evicted) {
    std::function<bool()> make_room = [this, &evicted, kept = std::move(kept)] {
        auto oldest = tree_.find_oldest(kept);
        if (!oldest) {
            return false;
        }
        forget(*oldest, Gone::kEvicted);
        // Now, whatever is pinned: the capture waits for the room. What is gone back to is kept.
        unpin();
        pin();
        evicted.push_back(std::move(*oldest));
        return true;
    };
    co_return co_await keeper_.capture(std::move(make_room));
}

boost::asio::awaitable<Result<KeptCheckpoints::Files>> KeptCheckpoints::look() {
    std::function<bool()> no_room = [] { return false; };
    co_return co_await keeper_.capture(std::move(no_room));
}

boost::asio::awaitable<Result<checkpoint::FileChanges>> KeptCheckpoints::compare_with_now(
    Files earlier, checkpoint::ChangesPage page) {
    auto now = co_await look();
    if (now.has_error()) {
        co_return now.error();
    }
    Files later = now.value();
    auto changes = co_await keeper_.compare(std::move(earlier), std::move(later), std::move(page));
    keeper_.drop(std::move(now.value()));
    co_return changes;
}

boost::asio::awaitable<Result<std::shared_ptr<const checkpoint::HeldFiles>>>
KeptCheckpoints::hold_now() {
    auto now = co_await look();
    if (now.has_error()) {
        co_return now.error();
    }
    if (!keeper_.versions()) {
        co_return Error(
            ErrorCode::kUnavailable, "files: this server keeps none, or the session has ended");
    }
    co_return keeper_.hold(std::move(now.value()));
}

boost::asio::awaitable<Result<checkpoint::MergeAnswer>> KeptCheckpoints::merge(
    std::shared_ptr<const checkpoint::HeldFiles> theirs, Files base, checkpoint::MergeOrder order) {
    auto now = co_await hold_now();
    if (now.has_error()) {
        co_return now.error();
    }
    const auto held = now.value();  // what is overwritten can be put back from it
    Files ours = held->manifest();
    co_return co_await keeper_.merge(
        std::move(ours), std::move(theirs), std::move(base), std::move(order));
}

bool KeptCheckpoints::is_at_rest() const {
    return !pinned_ && forgotten_.empty() && keeper_.is_at_rest() &&
           std::none_of(parts_.begin(), parts_.end(), [](const auto& one) {
               return one.second.copy->is_asked();
           });
}

PassedCheckpoints KeptCheckpoints::pass_on() {
    PassedCheckpoints passed;
    for (const Checkpoint& one : tree_.list()) {
        Parts parts = std::move(parts_.at(one.id));
        passed.all.push_back({one, std::move(parts.files), parts.copy->pass_on()});
    }
    parts_.clear();
    passed.origin = tree_.origin();
    passed.gone = tree_.gone();
    if (passed.all.empty()) {
        keeper_.close();  // without checkpoints it has no contents
    } else {
        passed.blobs = keeper_.pass_on();
    }
    return passed;
}

Status KeptCheckpoints::go_on(PassedCheckpoints passed) {
    std::vector<Files> files;
    for (const PassedCheckpoints::One& one : passed.all) {
        files.push_back(one.files);
    }
    if (passed.blobs) {
        BOOST_OUTCOME_TRY(keeper_.go_on(std::move(*passed.blobs), files));
    }
    for (PassedCheckpoints::One& one : passed.all) {
        BOOST_OUTCOME_TRY(auto copy, SleepingCopy::go_on(io_, std::move(one.sleeper)));
        add(std::move(one.checkpoint), {std::move(copy), std::move(one.files)});
    }
    tree_.set_origin(std::move(passed.origin));
    tree_.set_gone(std::move(passed.gone));
    return ok();
}

boost::asio::awaitable<checkpoint::CheckpointList> KeptCheckpoints::list() {
    using Measured = std::map<std::string, std::uint64_t>;
    const auto processes = std::make_shared<std::map<std::string, UniqueFd>>();
    for (const auto& [id, parts] : parts_) {
        processes->emplace(id, UniqueFd(::fcntl(parts.copy->pidfd().get(), F_DUPFD_CLOEXEC, 0)));
    }
    std::function<std::optional<Measured>()> measure =
        [processes, measured = std::make_shared<Measured>()]() -> std::optional<Measured> {
        if (processes->empty()) {
            return std::move(*measured);
        }
        const auto next = processes->begin();  // one in a slice: each may be large
        if (const auto bytes = checkpoint::read_private_bytes(next->second)) {
            measured->emplace(next->first, *bytes);
        }
        processes->erase(next);
        return std::nullopt;
    };
    Measured measured;
    if (!parts_.empty()) {
        const auto thread = work_thread_;
        measured = co_await run_elsewhere<Measured>(io_, *thread, std::move(measure));
    }
    checkpoint::CheckpointList list{tree_.list(), keeper_.bytes()};
    for (Checkpoint& one : list.checkpoints) {
        if (const auto found = measured.find(one.id); found != measured.end()) {
            one.private_bytes = found->second;
        }
    }
    co_return list;
}

void KeptCheckpoints::close() {
    for (const auto& [id, parts] : std::exchange(parts_, {})) {
        parts.copy->close();
    }
    keeper_.close();
}

}  // namespace cellkeep::session
