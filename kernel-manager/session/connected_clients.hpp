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
        : state_(std::make_shared<State>(State{0, {}, std::move(on_empty)})) {}

    std::shared_ptr<void> add() { return std::make_shared<Share>(state_); }
    std::size_t count() const { return state_->count; }
    /// As another program in this process has seen it.
    void go_on(std::optional<Time> left_at) { state_->left_at = left_at; }
    /// Nothing while one is connected, or if none ever was.
    std::optional<Time> left_at() const {
        return state_->count == 0 ? state_->left_at : std::nullopt;
    }

 private:
    struct State {
        std::size_t count = 0;
        std::optional<Time> left_at;
        std::function<void()> on_empty;
    };

    class Share {
     public:
        explicit Share(const std::shared_ptr<State>& state) : state_(state) { ++state->count; }
        Share(const Share&) = delete;
        Share& operator=(const Share&) = delete;
        ~Share() {
            const auto state = state_.lock();
            if (state && --state->count == 0) {
                state->left_at = std::chrono::steady_clock::now();
                state->on_empty();
            }
        }

     private:
        std::weak_ptr<State> state_;
    };

    std::shared_ptr<State> state_;
};

}  // namespace cellkeep::session
