// SPDX-License-Identifier: Apache-2.0
//
// Actions that wait for a person's word. A person says yes or no once; without a word in time the
// answer is no. The maker of a request may withdraw it. io_context thread only.
#pragma once

#include "kernel-manager/governance/gate.hpp"
#include "protocol/support/alarm.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::governance {

/// Of all sessions, and of one.
inline constexpr std::size_t kApprovalsMax = 256;
inline constexpr std::size_t kSessionApprovalsMax = 8;
/// How long a person may take.
inline constexpr std::chrono::milliseconds kApprovalPatience{600'000};
/// Answered ones that are still told from such as never were.
inline constexpr std::size_t kSettledKnownMax = 1024;

/// What a person is shown. Everything but the first group is the guest's or a tool server's text.
struct ApprovalRequest {
    ToolAction action;
    DecisionReason reason = DecisionReason::kRule;
    std::string session_id;
    std::string execution_id;  // empty: a Jupyter client's cell

    std::string tool;         // what code calls it
    std::string description;  // what its server says of it now
    std::string arguments;    // as JSON, perhaps cut
    bool arguments_cut = false;
    std::size_t arguments_bytes = 0;
    std::string arguments_sha256;
};

enum class ApprovalAnswer { kApproved, kDenied, kExpired };

/// "approved", "denied", "expired".
std::string_view to_string(ApprovalAnswer answer);

class Approvals {
 public:
    using Clock = std::chrono::system_clock;

    struct Pending {
        std::string id;  // "apr_" and 24 hexadecimal digits
        ApprovalRequest request;
        Clock::time_point asked_at;
        Clock::time_point expires_at;
    };
    /// by: the principal, or empty.
    using Settle = std::function<void(ApprovalAnswer, const std::string& by)>;
    /// One that waits. Withdraws it when it goes.
    struct Waiting {
        std::string id;
        std::shared_ptr<void> held;
    };

    explicit Approvals(
        boost::asio::io_context& io, std::chrono::milliseconds patience = kApprovalPatience);
    Approvals(const Approvals&) = delete;
    Approvals& operator=(const Approvals&) = delete;
    ~Approvals() = default;

    /// on_settled is called once, unless what this returns was let go before, and never inside.
    /// kLimitExceeded: kApprovalsMax or kSessionApprovalsMax wait.
    Result<Waiting> ask(ApprovalRequest request, Settle on_settled);

    /// Oldest first. The pointers are good until the next change.
    std::vector<const Pending*> list() const;
    /// Null: it does not wait.
    const Pending* find(const std::string& id) const;
    /// The owner of the session of one that no longer waits; null: none such is known.
    const std::string* find_settled(const std::string& id) const;

    /// kNotFound: it does not wait.
    Status settle(const std::string& id, ApprovalAnswer answer, const std::string& by);

    std::size_t size() const { return pending_.size(); }

 private:
    struct Entry {
        Entry(boost::asio::io_context& io, KeepAlive keep_alive)
            : alarm(io, std::move(keep_alive)) {}
        Pending pending;
        Settle settle;
        std::uint64_t number = 0;
        Alarm alarm;
    };

    void forget(const std::string& id);
    std::size_t count_of(const std::string& session_id) const;

    boost::asio::io_context& io_;
    const std::chrono::milliseconds patience_;
    std::map<std::string, std::shared_ptr<Entry>> pending_;
    std::uint64_t asked_ = 0;
    std::map<std::string, std::string> settled_;  // owner by id
    std::deque<std::string> settled_order_;       // oldest first
    /// What is withdrawn after this object has gone is not withdrawn from it.
    std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace cellkeep::governance
