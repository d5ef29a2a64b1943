// SPDX-License-Identifier: Apache-2.0
//
// The languages of a session: which it offers, and the lanes of those in which code has come.
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/session/live_session.hpp"
#include "kernel-manager/session/session_info.hpp"
#include "protocol/limits.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::session {

static_assert(kSessionLanguagesMax <= sandbox::kWorkerGroupsMax);

std::unique_ptr<SupervisedKernel> LiveSession::make_kernel(
    KernelSpec spec, sandbox::WorkerGroup group) {
    const SessionSetup& setup = setup_;
    return std::make_unique<SupervisedKernel>(
        io_,
        SupervisedKernel::Identity{
            .session_id = setup.id,
            .spec = std::move(spec),
            .group = group,
            .start_timeout = setup.start_timeout,
            .own = {setup.options.env, setup.options.working_directory},
            .spare = setup.spare},
        kernel_sandbox(group),
        SupervisedKernel::Budget{
            .limits = setup.options.limits,
            .account = account_,
            .usage = usage_,
            .queued_bytes = queued_bytes_},
        ExecutionFiles::Places{
            .workspace = workspace_,
            .saved_texts = saved_texts_,
            .work_thread = setup.work_thread,
            .inputs_thread = setup.inputs_thread,
            .inputs = setup.inputs},
        SupervisedKernel::Audience{.activity = activity_, .front_ends = output_},
        kernel_owner(),
        kernel_log(),
        [this]() -> std::shared_ptr<const void> { return weak_from_this().lock(); });
}

SupervisedKernel::Sandbox LiveSession::kernel_sandbox(sandbox::WorkerGroup group) {
    return {
        .start =
            [this](const KernelStarter::Order& order, Interpreter::Events events) {
                return starter_.start(order, std::move(events));
            },
        .prepare_directory =
            [this](const std::string& wanted) {
                return prepare_working_directory(workspace_, wanted);
            },
        .begin_sweep = [this, group] { return begin_sweep(kernel_of(group)); },
        .postpones_launch = [this, group] { return postpones_launch(kernel_of(group)); },
        .take_denials = [this] { take_denials(); },
        .restart_memory_peak =
            [this, group] { return is_alone(kernel_of(group)) && sandbox_.restart_memory_peak(); },
        .memory_peak = [this]() -> std::optional<std::uint64_t> {
            const auto peak = sandbox_.memory_peak();
            return peak.has_value() ? std::optional(peak.value()) : std::nullopt;
        },
        .wake = [this] { freezer_.wake(); }};
}

SupervisedKernel::Owner LiveSession::kernel_owner() {
    return {
        .complete = [this](
                        TrackedExecution& tracked,
                        ExecutionResult result) { complete(tracked, std::move(result)); },
        .on_left_dead = [this](const Death& death) { on_left_dead(death); },
        .note_use = [this] { note_use(); },
        .review_life = [this] { review_life(); },
        .end_session =
            [this] {
                setup_.on_end_requested({Death::Kind::kRequested, 0});
            },
        .make_usage = [this] { return make_usage(); }};
}

SupervisedKernel::Log LiveSession::kernel_log() {
    return {
        .line =
            [this](const std::string& what) {
                if (setup_.log) {
                    setup_.log("session " + setup_.id + ": " + what);
                }
            },
        .limit =
            [this](const std::string& execution_id, const LimitHit& hit) {
                if (setup_.log_limit) {
                    setup_.log_limit(execution_id, hit);
                }
            }};
}

std::vector<SupervisedKernel*> LiveSession::lanes() const {
    std::vector<SupervisedKernel*> all{main_.get()};
    for (const auto& lane : further_) {
        all.push_back(lane.get());
    }
    return all;
}

SupervisedKernel* LiveSession::find_lane(const std::string& language) const {
    const std::vector<SupervisedKernel*> all = lanes();
    const auto found = std::find_if(all.begin(), all.end(), [&](const SupervisedKernel* lane) {
        return lane->spec().language == language;
    });
    return found == all.end() ? nullptr : *found;
}

Status LiveSession::check_language(const std::string& language) const {
    if (find_lane(language) != nullptr) {
        return ok();
    }
    if (!setup_.offers(language)) {
        return setup_.refuse(language);
    }
    if (1 + further_.size() >= kSessionLanguagesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "language: the session runs " + std::to_string(kSessionLanguagesMax) +
                " languages already, and more do not fit",
            "Create another session for " + language + ".");
    }
    return ok();
}

Result<SupervisedKernel*> LiveSession::lane_in_use(const std::string& language) const {
    SupervisedKernel* lane = find_lane(language);
    if (lane == nullptr) {
        return setup_.offers(language)
                   ? Error(ErrorCode::kConflict, "language: the session has not used " + language)
                   : setup_.refuse(language);
    }
    return lane;
}

SupervisedKernel& LiveSession::open_lane(const std::string& language) {
    if (SupervisedKernel* lane = find_lane(language)) {
        return *lane;
    }
    KernelSpec spec = *setup_.catalog->find(language);
    const auto& network = setup_.network_env;
    spec.env.insert(spec.env.end(), network.begin(), network.end());
    main_->count_own_cpu();
    const auto group = static_cast<sandbox::WorkerGroup>(1 + further_.size());
    further_.push_back(make_kernel(std::move(spec), group));
    to_launch_.push_back(further_.back().get());
    return *further_.back();
}

bool LiveSession::postpones_launch(SupervisedKernel& lane) {
    if (sweeping_all_ &&
        std::find(to_launch_.begin(), to_launch_.end(), &lane) == to_launch_.end()) {
        to_launch_.push_back(&lane);
    }
    return sweeping_all_;
}

void LiveSession::launch_lanes() {
    if (sweeping_all_ || to_launch_.empty() || closed_) {
        return;
    }
    freezer_.wake();
    for (SupervisedKernel* lane : std::exchange(to_launch_, {})) {
        lane->launch_or_die();
    }
}

std::vector<LanguageInfo> LiveSession::list_languages() const {
    std::vector<LanguageInfo> all;
    for (const SupervisedKernel* lane : lanes()) {
        all.push_back({lane->spec().language, lane->state(), lane->death(), lane->restarts()});
    }
    if (setup_.catalog) {
        for (const std::string& language : setup_.catalog->languages()) {
            if (find_lane(language) == nullptr) {
                all.push_back({language, std::nullopt, std::nullopt, 0});
            }
        }
    }
    return all;
}

bool LiveSession::is_alone(const SupervisedKernel& lane) const {
    const std::vector<SupervisedKernel*> all = lanes();
    return std::none_of(all.begin(), all.end(), [&](const SupervisedKernel* other) {
        return other != &lane && other->is_running();
    });
}

Status LiveSession::interrupt() {
    Status done = main_->interrupt();
    for (const auto& lane : further_) {
        const Status one = lane->interrupt();
        done = one.has_value() ? Status(ok()) : std::move(done);
    }
    return done;
}

Status LiveSession::interrupt_language(const std::string& language) {
    BOOST_OUTCOME_TRY(SupervisedKernel * lane, lane_in_use(language));
    return lane->interrupt();
}

boost::asio::awaitable<Status> LiveSession::restart() {
    co_return co_await restart_language(main_->spec().language);
}

boost::asio::awaitable<Status> LiveSession::restart_language(const std::string& language) {
    const auto self = shared_from_this();
    if (closed_) {
        co_return Error(ErrorCode::kConflict, "restart: the session has ended");
    }
    BOOST_OUTCOME_CO_TRY(SupervisedKernel * lane, lane_in_use(language));
    touch();
    co_return co_await lane->restart();
}

}  // namespace cellkeep::session
