// SPDX-License-Identifier: Apache-2.0
//
// When a server is ready: its zygotes have begun and each is made or could not be made, and the
// same of the first spare sessions. Until then it serves sessions, but they start slower. A pure
// object: the caller passes what it knows. Not thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <utility>

namespace cellkeep::session {

class Readiness {
 public:
    using TimePoint = std::chrono::steady_clock::time_point;
    /// zygotes_ready: asked after begin(). on_ready: called once, with the time since made_at; may
    /// be empty.
    Readiness(
        TimePoint made_at,
        std::function<bool()> zygotes_ready,
        std::function<void(std::chrono::milliseconds)> on_ready)
        : made_at_(made_at),
          zygotes_ready_(std::move(zygotes_ready)),
          on_ready_(std::move(on_ready)) {}

    /// Zygotes are being made from now on.
    void begin() { begun_ = true; }
    /// What came before does not count as warming.
    void restart_clock(TimePoint now) { made_at_ = now; }
    /// The first spares are made, or none can be made now.
    void note_spares_settled(TimePoint now) {
        has_spares_ = true;
        review(now);
    }
    /// To be called when a zygote is made or could not be made.
    void review(TimePoint now) {
        if (!is_ready() || std::exchange(announced_, true) || !on_ready_) {
            return;
        }
        on_ready_(std::chrono::duration_cast<std::chrono::milliseconds>(now - made_at_));
    }
    bool is_ready() const { return begun_ && has_spares_ && zygotes_ready_(); }

 private:
    TimePoint made_at_;
    const std::function<bool()> zygotes_ready_;
    const std::function<void(std::chrono::milliseconds)> on_ready_;
    bool begun_ = false;
    bool has_spares_ = false;
    bool announced_ = false;
};

}  // namespace cellkeep::session
