// SPDX-License-Identifier: Apache-2.0
//
// One request while it is answered: who asks, in which revision, whom to tell of progress, what its
// client said when it was asked, and whether the answer is still wanted. Shared by the transport,
// which may cancel it, and by what answers it. io_context thread only.
#pragma once

#include "kernel-manager/http/access/principal.hpp"
#include "kernel-manager/mcp/client.hpp"
#include "kernel-manager/mcp/wire/revision.hpp"
#include "kernel-manager/mcp/wire/rpc.hpp"

#include <nlohmann/json.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::mcp {

/// What a request of 2026-07-28 brings that was made before and was answered with questions.
struct InputRound {
    nlohmann::json responses = nlohmann::json::object();  // by the keys of the questions
    nlohmann::json memory;  // what the server wanted back; null: nothing
    std::string subject;    // what a new memory is sealed for
};

class Call {
 public:
    Call(
        http::Principal principal,
        Peer peer,
        nlohmann::json progress_token = {},
        std::shared_ptr<Client> client = nullptr)
        : principal_(std::move(principal)),
          peer_(std::move(peer)),
          progress_token_(std::move(progress_token)),
          client_(std::move(client)) {}
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() = default;

    const http::Principal& principal() const { return principal_; }
    const Peer& peer() const { return peer_; }
    /// Null for a request that stands alone.
    const std::shared_ptr<Client>& client() const { return client_; }

    /// Where messages go while the answer is made, one JSON-RPC message each; false: there is no
    /// room for it now. Empty: they are dropped.
    void set_listener(Client::Outlet listener) { listener_ = std::move(listener); }
    bool has_listener() const { return listener_ != nullptr; }
    bool wants_progress() const { return !progress_token_.is_null() && listener_ != nullptr; }
    /// One JSON-RPC message. False if it was not taken.
    bool notify(const nlohmann::json& message) const { return listener_ && listener_(message); }
    /// `progress` grows from call to call; total 0: nobody knows. Does nothing unless it is wanted.
    void report_progress(double progress, const std::string& message, double total = 0) const {
        if (wants_progress()) {
            nlohmann::json params = {
                {"progressToken", progress_token_}, {"progress", progress}, {"message", message}};
            if (total > 0) {
                params["total"] = total;
            }
            (void)listener_(notification_message("notifications/progress", std::move(params)));
        }
    }
    /// A line of the log for the client, if it wants those of this level.
    void log(LogLevel level, nlohmann::json data) const {
        if (peer_.log_level && level >= *peer_.log_level) {
            (void)notify(notification_message(
                "notifications/message",
                {{"level", to_string(level)}, {"logger", "cellkeep"}, {"data", std::move(data)}}));
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

    /// Ends only with its client: nobody waits for its end.
    void set_endless() { endless_ = true; }
    bool endless() const { return endless_; }

    InputRound input;

 private:
    http::Principal principal_;
    Peer peer_;
    nlohmann::json progress_token_;
    std::shared_ptr<Client> client_;
    Client::Outlet listener_;
    std::function<void()> on_cancel_;
    bool cancelled_ = false;
    bool endless_ = false;
};

}  // namespace cellkeep::mcp
