// SPDX-License-Identifier: Apache-2.0
//
// How many sessions of which kind should be ready before a client asks: what the operator always
// wants, and besides as many of each kind as were asked for within one second, at the busiest
// second of the last ten minutes. A pure object: the caller passes the time.
#pragma once

#include "kernel-manager/session/session_options.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

namespace cellkeep::session {

/// How long a busy second counts.
inline constexpr std::chrono::minutes kDemandMemory{10};
/// What is asked for together is asked for within this.
inline constexpr std::chrono::seconds kDemandMoment{1};
/// Kinds that are learned from what is asked for. A ninth takes the place of the one that was
/// not asked for the longest, but of none that was asked for within kDemandHold: a client that
/// asks for another kind every time must not have a spare made for each.
inline constexpr std::size_t kLearnedKindsMax = 8;
inline constexpr std::chrono::minutes kDemandHold{1};

/// Whether a session that was made in advance can be given to a client that asks for this: what
/// cannot be changed any more must be equal, and no variable may be asked for that is only read
/// when a process starts.
bool fits(const SessionOptions& spare, const SessionOptions& asked);

class SpareDemand {
 public:
    using TimePoint = std::chrono::steady_clock::time_point;
    struct Kind {
        SessionOptions options;
        std::size_t count = 0;
    };

    /// most: of all spares together that are kept for demand's sake, those of `always` counted; 0:
    /// nothing is learned. What is wanted always is wanted even beyond it.
    SpareDemand(std::vector<Kind> always, std::size_t most);

    /// A client asks for a session. One that no spare could have been given to counts for nothing.
    void note(const SessionOptions& asked, TimePoint now);
    /// How many there should be of which kind, in the order in which they are made: first what is
    /// wanted always, then the kinds that were asked for last. A kind may be named twice, the
    /// second time with more.
    std::vector<Kind> wanted(TimePoint now) const;
    /// Of those that fit this, counted as wanted() does; 0 for a kind that is not wanted.
    std::size_t wanted(const SessionOptions& options, TimePoint now) const;
    /// How many of those are wanted always.
    std::size_t wanted_always(const SessionOptions& options) const;
    /// When the demand falls if no client asks for anything more; nullopt: never.
    std::optional<TimePoint> declines_at(TimePoint now) const;

 private:
    struct Peak {
        TimePoint at;
        std::size_t count = 0;
    };
    struct Asked {
        SessionOptions options;
        TimePoint last;
        std::deque<TimePoint> moment;  // those of the last kDemandMoment, at most most_
        /// The last of each height that nothing later has reached: falling, so at most most_.
        std::deque<Peak> peaks;
    };

    Asked* learn(const SessionOptions& asked, TimePoint now);
    static const Peak* peak_of(const Asked& asked, TimePoint now);

    std::vector<Kind> always_;
    std::size_t most_;
    std::vector<Asked> asked_;
};

}  // namespace cellkeep::session
