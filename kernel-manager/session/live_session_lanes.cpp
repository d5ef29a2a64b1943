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

std::vector<KernelLane*> LiveSession::lanes() const {
    std::vector<KernelLane*> all{main_.get()};
    for (const auto& lane : further_) {
        all.push_back(lane.get());
    }
    return all;
}

KernelLane* LiveSession::find_lane(const std::string& language) const {
    const std::vector<KernelLane*> all = lanes();
    const auto found = std::find_if(all.begin(), all.end(), [&](const KernelLane* lane) {
        return lane->spec().language == language;
    });
    return found == all.end() ? nullptr : *found;
}

Status LiveSession::check_language(const std::string& language) const {
    if (find_lane(language) != nullptr) {
        return ok();
    }
    if (!shared_.setup.offers(language)) {
        return shared_.setup.refuse(language);
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

Result<KernelLane*> LiveSession::lane_in_use(const std::string& language) const {
    KernelLane* lane = find_lane(language);
    if (lane == nullptr) {
        return shared_.setup.offers(language)
                   ? Error(ErrorCode::kConflict, "language: the session has not used " + language)
                   : shared_.setup.refuse(language);
    }
    return lane;
}

KernelLane& LiveSession::open_lane(const std::string& language) {
    if (KernelLane* lane = find_lane(language)) {
        return *lane;
    }
    KernelSpec spec = *shared_.setup.catalog->find(language);
    const auto& network = shared_.setup.network_env;
    spec.env.insert(spec.env.end(), network.begin(), network.end());
    main_->count_own_cpu();
    const auto group = static_cast<sandbox::WorkerGroup>(1 + further_.size());
    further_.push_back(std::make_unique<KernelLane>(
        static_cast<LaneHost&>(*this), shared_, std::move(spec), group));
    to_launch_.push_back(further_.back().get());
    return *further_.back();
}

bool LiveSession::postpones_launch(KernelLane& lane) {
    if (sweeping_all_ &&
        std::find(to_launch_.begin(), to_launch_.end(), &lane) == to_launch_.end()) {
        to_launch_.push_back(&lane);
    }
    return sweeping_all_;
}

void LiveSession::launch_lanes() {
    if (sweeping_all_ || to_launch_.empty() || shared_.closed) {
        return;
    }
    freezer_.wake();
    for (KernelLane* lane : std::exchange(to_launch_, {})) {
        lane->launch_or_die();
    }
}

std::vector<LanguageInfo> LiveSession::list_languages() const {
    std::vector<LanguageInfo> all;
    for (const KernelLane* lane : lanes()) {
        all.push_back({lane->spec().language, lane->state(), lane->death(), lane->restarts()});
    }
    if (shared_.setup.catalog) {
        for (const std::string& language : shared_.setup.catalog->languages()) {
            if (find_lane(language) == nullptr) {
                all.push_back({language, std::nullopt, std::nullopt, 0});
            }
        }
    }
    return all;
}

bool LiveSession::is_alone(const KernelLane& lane) const {
    const std::vector<KernelLane*> all = lanes();
    return std::none_of(all.begin(), all.end(), [&](const KernelLane* other) {
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
    BOOST_OUTCOME_TRY(KernelLane * lane, lane_in_use(language));
    return lane->interrupt();
}

boost::asio::awaitable<Status> LiveSession::restart() {
    co_return co_await restart_language(main_->spec().language);
}

boost::asio::awaitable<Status> LiveSession::restart_language(const std::string& language) {
    const auto self = shared_from_this();
    if (shared_.closed) {
        co_return Error(ErrorCode::kConflict, "restart: the session has ended");
    }
    BOOST_OUTCOME_CO_TRY(KernelLane * lane, lane_in_use(language));
    touch();
    co_return co_await lane->restart();
}

}  // namespace cellkeep::session
