// SPDX-License-Identifier: Apache-2.0
//
// One request while it is answered: who asks, in which revision, whom to tell of progress, and
// whether the answer is still wanted. Shared by the transport, which may cancel it, and by what
// answers it. io_context thread only.
#pragma once

#include "kernel-manager/http/access/principal.hpp"
#include "kernel-manager/mcp/wire/revision.hpp"
#include "kernel-manager/mcp/wire/rpc.hpp"

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <utility>

namespace cellkeep::mcp {

class Call {
 public:
    Call(http::Principal principal, Peer peer, nlohmann::json progress_token = {})
        : principal_(std::move(principal)),
          peer_(std::move(peer)),
          progress_token_(std::move(progress_token)) {}
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() = default;

    const http::Principal& principal() const { return principal_; }
    const Peer& peer() const { return peer_; }

    /// Where notifications go, one JSON-RPC message each. Empty: they are dropped.
    void set_listener(std::function<void(nlohmann::json)> listener) {
        listener_ = std::move(listener);
    }
    bool wants_progress() const { return !progress_token_.is_null() && listener_ != nullptr; }
    /// One JSON-RPC message.
    void notify(nlohmann::json notification) const {
        if (listener_) {
            listener_(std::move(notification));
        }
    }
    /// `progress` grows from call to call. Does nothing unless it is wanted.
    void report_progress(double progress, const std::string& message) const {
        if (wants_progress()) {
            listener_(notification_message(
                "notifications/progress",
                {{"progressToken", progress_token_},
                 {"progress", progress},
                 {"message", message}}));
        }
    }

    /// The client no longer wants the answer: what runs for it is to be interrupted.
    void cancel() {
        if (!std::exchange(cancelled_, true) && on_cancel_) {
            on_cancel_();
        }
    }
    bool cancelled() const { return cancelled_; }
    /// Called at cancel(); it may only take note. One at a time; empty: nothing is called.
    void on_cancel(std::function<void()> action) { on_cancel_ = std::move(action); }

 private:
    http::Principal principal_;
    Peer peer_;
    nlohmann::json progress_token_;
    std::function<void(nlohmann::json)> listener_;
    std::function<void()> on_cancel_;
    bool cancelled_ = false;
};

}  // namespace cellkeep::mcp
