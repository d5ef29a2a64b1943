// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/session_kernels.hpp"

#include "kernel-manager/kernel/kernel_state.hpp"
#include "kernel-manager/languages/named_environments.hpp"
#include "protocol/limits.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {

static_assert(kSessionLanguagesMax <= sandbox::kWorkerGroupsMax);

std::string language_of_interpreter(const std::string& name) {
    const std::size_t colon = name.rfind(':');
    if (colon == std::string::npos) {
        return name;
    }
    unsigned number = 0;
    const char* end = name.data() + name.size();
    const auto [stop, failed] = std::from_chars(name.data() + colon + 1, end, number);
    const bool is_number = failed == std::errc() && stop == end && name[colon + 1] != '0';
    return is_number && number >= 2 && number <= kInterpreterNumberMax ? name.substr(0, colon)
                                                                       : name;
}

SessionKernels::SessionKernels(const SessionSetup& setup, Hooks hooks)
    : setup_(setup), hooks_(std::move(hooks)), main_(hooks_.make(setup.spec, 0)) {}

std::vector<SupervisedKernel*> SessionKernels::all() const {
    std::vector<SupervisedKernel*> kernels{main_.get()};
    for (const auto& kernel : further_) {
        kernels.push_back(kernel.get());
    }
    return kernels;
}

SupervisedKernel* SessionKernels::find(const std::string& language) const {
    const std::vector<SupervisedKernel*> kernels = all();
    const auto found =
        std::find_if(kernels.begin(), kernels.end(), [&](const SupervisedKernel* kernel) {
            return kernel->spec().language == language || offered_by(kernel->spec()) == language;
        });
    return found == kernels.end() ? nullptr : *found;
}

Result<SupervisedKernel*> SessionKernels::find_used(const std::string& language) const {
    SupervisedKernel* kernel = find(language);
    if (kernel == nullptr) {
        return setup_.offers(language_of_interpreter(language))
                   ? Error(ErrorCode::kConflict, "language: the session has not used " + language)
                   : setup_.refuse(language);
    }
    return kernel;
}

Status SessionKernels::check(const std::string& language) const {
    if (find(language) != nullptr) {
        return ok();
    }
    if (!setup_.offers(language_of_interpreter(language))) {
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

SupervisedKernel& SessionKernels::open(const std::string& language) {
    if (SupervisedKernel* kernel = find(language)) {
        return *kernel;
    }
    to_launch_.push_back(&add(language));
    return *to_launch_.back();
}

Result<SupervisedKernel*> SessionKernels::open_again(const std::string& language) {
    if (find(language) != nullptr || check(language).has_error()) {
        return Error(ErrorCode::kProtocol, "passed session: no further kernel of " + language);
    }
    return &add(language);
}

SupervisedKernel& SessionKernels::add(const std::string& language) {
    KernelSpec spec = *setup_.catalog->find(language_of_interpreter(language));
    spec.language = language;
    const auto& network = setup_.network_env;
    spec.env.insert(spec.env.end(), network.begin(), network.end());
    main_->count_own_cpu();
    const auto group = static_cast<sandbox::WorkerGroup>(1 + further_.size());
    further_.push_back(hooks_.make(std::move(spec), group));
    return *further_.back();
}

std::vector<LanguageInfo> SessionKernels::list() const {
    std::vector<LanguageInfo> languages;
    for (const SupervisedKernel* kernel : all()) {
        languages.push_back(
            {kernel->spec().language, kernel->state(), kernel->death(), kernel->restarts()});
    }
    if (setup_.catalog) {
        for (const std::string& language : setup_.catalog->languages()) {
            if (find(language) == nullptr) {
                languages.push_back({language, std::nullopt, std::nullopt, 0});
            }
        }
    }
    return languages;
}

OfferedLanguages SessionKernels::offered() const {
    const std::string& own = setup_.options.language;
    OfferedLanguages offered{{own}, nullptr};
    if (setup_.catalog) {
        const std::vector<std::string> all = setup_.catalog->languages();
        std::remove_copy(all.begin(), all.end(), std::back_inserter(offered.names), own);
        offered.not_offered = {setup_.catalog, &setup_.catalog->not_offered()};
    }
    return offered;
}

void SessionKernels::launch_waiting() {
    if (sweeping_all_ || to_launch_.empty() || closed_) {
        return;
    }
    hooks_.wake();
    for (SupervisedKernel* kernel : std::exchange(to_launch_, {})) {
        kernel->launch_or_die();
    }
}

// It changes the kernels that this object owns.
// NOLINTNEXTLINE(readability-make-member-function-const)
void SessionKernels::dispatch() {
    for (SupervisedKernel* kernel : all()) {
        kernel->dispatch();
    }
}

bool SessionKernels::postpones_launch(SupervisedKernel& kernel) {
    if (sweeping_all_ &&
        std::find(to_launch_.begin(), to_launch_.end(), &kernel) == to_launch_.end()) {
        to_launch_.push_back(&kernel);
    }
    return sweeping_all_;
}

Status SessionKernels::begin_sweep(SupervisedKernel& kernel) {
    const std::vector<SupervisedKernel*> kernels = all();
    const bool others_live =
        std::any_of(kernels.begin(), kernels.end(), [&](const SupervisedKernel* other) {
            return other != &kernel && other->has_process() && !other->has_ended();
        });
    if (others_live || hooks_.spares_others()) {
        return hooks_.begin_group_sweep(kernel.group());
    }
    // Also what has got away from its group, where that can be.
    Status begun = hooks_.begin_sweep();
    sweeping_all_ = begun.has_value();
    return begun;
}

void SessionKernels::on_swept() {
    sweeping_all_ = false;
    for (SupervisedKernel* kernel : all()) {
        kernel->on_swept();
    }
    launch_waiting();
}

// It changes the kernels that this object owns.
// NOLINTNEXTLINE(readability-make-member-function-const)
void SessionKernels::on_group_swept(sandbox::WorkerGroup group) {
    for (SupervisedKernel* kernel : all()) {
        if (kernel->group() == group) {
            kernel->on_swept();
        }
    }
}

Status SessionKernels::interrupt() {
    Status done = main_->interrupt();
    for (const auto& kernel : further_) {
        const Status one = kernel->interrupt();
        done = one.has_value() ? Status(ok()) : std::move(done);
    }
    return done;
}

bool SessionKernels::is_alone(const SupervisedKernel& kernel) const {
    const std::vector<SupervisedKernel*> kernels = all();
    return std::none_of(kernels.begin(), kernels.end(), [&](const SupervisedKernel* other) {
        return other != &kernel && other->is_running();
    });
}

bool SessionKernels::are_busy() const {
    const std::vector<SupervisedKernel*> kernels = all();
    return std::any_of(kernels.begin(), kernels.end(), [](const SupervisedKernel* kernel) {
        return kernel->is_busy();
    });
}

bool SessionKernels::are_dead() const {
    const std::vector<SupervisedKernel*> kernels = all();
    return std::all_of(kernels.begin(), kernels.end(), [](const SupervisedKernel* kernel) {
        return kernel->state() == KernelState::kDead;
    });
}

bool SessionKernels::can_pass(bool with_runs) const {
    const std::vector<SupervisedKernel*> kernels = all();
    return !sweeping_all_ && to_launch_.empty() &&
           std::all_of(kernels.begin(), kernels.end(), [with_runs](const auto* kernel) {
               return kernel->can_pass(with_runs);
           });
}

std::size_t SessionKernels::running() const {
    const std::vector<SupervisedKernel*> kernels = all();
    return static_cast<std::size_t>(std::count_if(
        kernels.begin(), kernels.end(), [](const auto* kernel) { return kernel->is_running(); }));
}

bool SessionKernels::are_at_work() const {
    const std::vector<SupervisedKernel*> kernels = all();
    // One that is dead for good is as if it had never been, unless it is the last.
    const bool live = std::any_of(
        kernels.begin(), kernels.end(), [](const auto* kernel) { return kernel->has_process(); });
    const bool work = std::any_of(kernels.begin(), kernels.end(), [](const auto* kernel) {
        return kernel->is_at_work() && kernel->state() != KernelState::kDead;
    });
    return !live || work;
}

std::size_t SessionKernels::waiting() const {
    std::size_t requests = 0;
    for (const SupervisedKernel* kernel : all()) {
        requests += kernel->waiting();
    }
    return requests;
}

void SessionKernels::close() {
    closed_ = true;
    to_launch_.clear();
    for (SupervisedKernel* kernel : all()) {
        kernel->close();
    }
}

void SessionKernels::end(const Death& reason) {
    for (const auto& kernel : further_) {
        kernel->end(reason);
    }
    main_->end(reason);
}

}  // namespace cellkeep::session
