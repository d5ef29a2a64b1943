// SPDX-License-Identifier: Apache-2.0
//
// Counts the clients that are connected to one session, each for as long as the share it was given
// lives, and knows when the last of them left. Shares may outlive this. io_context thread only.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace cellkeep::session {

class ConnectedClients {
 public:
    using Time = std::chrono::steady_clock::time_point;

    /// on_empty is called when the last client has left.
    explicit ConnectedClients(std::function<void()> on_empty)
        : state_(std::make_shared<State>(State{0, 0, {}, std::move(on_empty)})) {}

    std::shared_ptr<void> add() { return std::make_shared<Share>(state_, false); }
    /// One that connects again by itself if it is asked to.
    std::shared_ptr<void> add_returning() { return std::make_shared<Share>(state_, true); }
    std::size_t count() const { return state_->count; }
    /// Of those that would not.
    std::size_t staying() const { return state_->count - state_->returning; }
    /// As another program in this process has seen it.
    void go_on(std::optional<Time> left_at) { state_->left_at = left_at; }
    /// Nothing while one is connected, or if none ever was.
    std::optional<Time> left_at() const {
        return state_->count == 0 ? state_->left_at : std::nullopt;
    }

 private:
    struct State {
        std::size_t count = 0;
        std::size_t returning = 0;  // of them
        std::optional<Time> left_at;
        std::function<void()> on_empty;
    };

    class Share {
     public:
        Share(const std::shared_ptr<State>& state, bool returns)
            : state_(state), returns_(returns) {
            ++state->count;
            state->returning += returns ? 1 : 0;
        }
        Share(const Share&) = delete;
        Share& operator=(const Share&) = delete;
        ~Share() {
            const auto state = state_.lock();
            if (state && returns_) {
                --state->returning;
            }
            if (state && --state->count == 0) {
                state->left_at = std::chrono::steady_clock::now();
                state->on_empty();
            }
        }

     private:
        std::weak_ptr<State> state_;
        const bool returns_;
    };

    std::shared_ptr<State> state_;
};

}  // namespace cellkeep::session
