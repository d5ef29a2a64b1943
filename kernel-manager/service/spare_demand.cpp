// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/spare_demand.hpp"

#include "kernel-manager/execution/inputs_directory.hpp"
#include "kernel-manager/kernel/process/start_variables.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::session {

namespace {

/// What a spare for somebody who asks for this is made with; the rest is its owner's.
SessionOptions spare_of(const SessionOptions& asked) {
    SessionOptions options;
    options.language = asked.language;
    options.environment = asked.environment;
    options.limits = asked.limits;
    return options;
}

}  // namespace

bool fits(const SessionOptions& spare, const SessionOptions& asked) {
    const SessionLimits& made = spare.limits;
    const SessionLimits& wanted = asked.limits;
    const bool same_sandbox = made.cpu_cores == wanted.cpu_cores &&
                              made.memory_mb == wanted.memory_mb &&
                              made.disk_mb == wanted.disk_mb && made.processes == wanted.processes;
    return same_sandbox && spare.language == asked.language &&
           spare.environment == asked.environment && spare.network == asked.network &&
           !has_start_variables(asked.env);
}

SpareDemand::SpareDemand(std::vector<Kind> always, std::size_t most)
    : always_(std::move(always)), most_(most) {}

void SpareDemand::note(const SessionOptions& asked, TimePoint now) {
    // Inputs of the operator's are mounted when a sandbox is made.
    if (most_ == 0 || has_references(asked.files) || !fits(spare_of(asked), asked)) {
        return;
    }
    Asked* const kind = learn(asked, now);
    if (kind == nullptr) {
        return;
    }
    kind->last = now;
    while (!kind->moment.empty() && now - kind->moment.front() >= kDemandMoment) {
        kind->moment.pop_front();
    }
    kind->moment.push_back(now);
    if (kind->moment.size() > most_) {
        kind->moment.pop_front();
    }
    const std::size_t count = kind->moment.size();
    while (!kind->peaks.empty() && kind->peaks.back().count <= count) {
        kind->peaks.pop_back();
    }
    kind->peaks.push_back({now, count});
}

SpareDemand::Asked* SpareDemand::learn(const SessionOptions& asked, TimePoint now) {
    const auto known = std::find_if(
        asked_.begin(), asked_.end(), [&](const Asked& one) { return fits(one.options, asked); });
    if (known != asked_.end()) {
        return &*known;
    }
    const auto is_always = [this](const SessionOptions& options) {
        return wanted_always(options) > 0;
    };
    if (!is_always(asked)) {
        const auto learned = std::count_if(asked_.begin(), asked_.end(), [&](const Asked& one) {
            return !is_always(one.options);
        });
        if (static_cast<std::size_t>(learned) >= kLearnedKindsMax) {
            const auto oldest = std::min_element(
                asked_.begin(), asked_.end(), [&](const Asked& one, const Asked& other) {
                    // Those that are wanted always are not in question: as if never old.
                    return std::pair(is_always(one.options), one.last) <
                           std::pair(is_always(other.options), other.last);
                });
            if (now - oldest->last < kDemandHold) {
                return nullptr;
            }
            asked_.erase(oldest);
        }
    }
    asked_.push_back({spare_of(asked), now, {}, {}});
    return &asked_.back();
}

const SpareDemand::Peak* SpareDemand::peak_of(const Asked& asked, TimePoint now) {
    const auto found = std::find_if(asked.peaks.begin(), asked.peaks.end(), [&](const Peak& peak) {
        return now - peak.at < kDemandMemory;
    });
    return found == asked.peaks.end() ? nullptr : &*found;
}

std::vector<SpareDemand::Kind> SpareDemand::wanted(TimePoint now) const {
    std::vector<Kind> kinds = always_;
    std::size_t together = 0;
    for (const Kind& kind : always_) {
        together += kind.count;
    }
    std::vector<const Asked*> latest_first;
    for (const Asked& asked : asked_) {
        latest_first.push_back(&asked);
    }
    std::stable_sort(
        latest_first.begin(), latest_first.end(), [](const Asked* one, const Asked* other) {
            return one->last > other->last;
        });
    for (const Asked* asked : latest_first) {
        const Peak* const peak = peak_of(*asked, now);
        const std::size_t have = wanted_always(asked->options);
        if (peak == nullptr || peak->count <= have || together >= most_) {
            continue;
        }
        const std::size_t more = std::min(peak->count - have, most_ - together);
        kinds.push_back({asked->options, have + more});
        together += more;
    }
    return kinds;
}

std::size_t SpareDemand::wanted(const SessionOptions& options, TimePoint now) const {
    std::size_t most = 0;
    for (const Kind& kind : wanted(now)) {
        if (fits(kind.options, options)) {
            most = std::max(most, kind.count);
        }
    }
    return std::max(most, wanted_always(options));
}

std::size_t SpareDemand::wanted_always(const SessionOptions& options) const {
    std::size_t count = 0;
    for (const Kind& kind : always_) {
        if (fits(kind.options, options)) {
            count = std::max(count, kind.count);
        }
    }
    return count;
}

std::optional<SpareDemand::TimePoint> SpareDemand::declines_at(TimePoint now) const {
    std::optional<TimePoint> next;
    for (const Asked& asked : asked_) {
        if (const Peak* const peak = peak_of(asked, now); peak != nullptr) {
            const TimePoint at = peak->at + kDemandMemory;
            next = std::min(next.value_or(at), at);
        }
    }
    return next;
}

}  // namespace cellkeep::session
