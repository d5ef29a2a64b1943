// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/governance/approvals.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::governance {
namespace {

ApprovalRequest request_of(const std::string& session, const std::string& owner = "analyst") {
    ApprovalRequest request;
    request.session_id = session;
    request.action.principal = owner;
    return request;
}

/// What became of one that waits.
struct Asked {
    Asked(Approvals& approvals, const std::string& session) {
        auto waiting = approvals.ask(
            request_of(session), [this](ApprovalAnswer given, const std::string& principal) {
                ++told;
                answer = given;
                by = principal;
            });
        REQUIRE(waiting.has_value());
        id = waiting.value().id;
        held = std::move(waiting.value().held);
    }
    Asked(const Asked&) = delete;
    Asked& operator=(const Asked&) = delete;
    ~Asked() = default;

    std::string id;
    std::shared_ptr<void> held;
    int told = 0;
    std::optional<ApprovalAnswer> answer;
    std::string by;
};

TEST_CASE("a person's word is told once", "[governance][approvals]") {
    boost::asio::io_context io{1};
    Approvals approvals(io);
    Asked first(approvals, "ses_1");
    Asked second(approvals, "ses_1");
    CHECK(first.id.starts_with("apr_"));
    CHECK(first.id != second.id);
    REQUIRE(approvals.list().size() == 2);
    CHECK(approvals.list().front()->id == first.id);
    CHECK(
        approvals.list().front()->expires_at - approvals.list().front()->asked_at >=
        kApprovalPatience);
    CHECK(approvals.settle(first.id, ApprovalAnswer::kApproved, "admin").has_value());
    CHECK(first.told == 1);
    CHECK(first.answer == ApprovalAnswer::kApproved);
    CHECK(first.by == "admin");
    CHECK(
        approvals.settle(first.id, ApprovalAnswer::kDenied, "admin").error().code() ==
        ErrorCode::kNotFound);
    CHECK(first.told == 1);
    CHECK(approvals.find(first.id) == nullptr);
    REQUIRE(approvals.find_settled(first.id) != nullptr);
    CHECK(*approvals.find_settled(first.id) == "analyst");
    CHECK(approvals.find_settled(second.id) == nullptr);
    CHECK(approvals.find(second.id) != nullptr);
    CHECK(approvals.settle("apr_none", ApprovalAnswer::kApproved, "admin").has_error());
    CHECK(approvals.settle(second.id, ApprovalAnswer::kDenied, "root").has_value());
    CHECK(second.answer == ApprovalAnswer::kDenied);
    CHECK(approvals.size() == 0);
}

TEST_CASE("without a word in time the answer is no", "[governance][approvals]") {
    boost::asio::io_context io{1};
    Approvals approvals(io, std::chrono::milliseconds(1));
    const Asked asked(approvals, "ses_1");
    io.run_for(std::chrono::seconds(30));
    CHECK(asked.told == 1);
    CHECK(asked.answer == ApprovalAnswer::kExpired);
    CHECK(asked.by.empty());
    CHECK(approvals.size() == 0);
    CHECK(approvals.settle(asked.id, ApprovalAnswer::kApproved, "admin").has_error());
}

TEST_CASE("what is withdrawn asks nobody any more", "[governance][approvals]") {
    boost::asio::io_context io{1};
    std::optional<Approvals> approvals;
    approvals.emplace(io);
    Asked asked(*approvals, "ses_1");
    asked.held.reset();
    CHECK(approvals->size() == 0);
    CHECK(approvals->find_settled(asked.id) != nullptr);
    CHECK(approvals->settle(asked.id, ApprovalAnswer::kApproved, "admin").has_error());
    CHECK(asked.told == 0);
    // Also when there is nothing left to withdraw it from.
    Asked late(*approvals, "ses_1");
    approvals.reset();
    late.held.reset();
    CHECK(late.told == 0);
}

TEST_CASE("so many wait, of one session and of all", "[governance][approvals]") {
    boost::asio::io_context io{1};
    Approvals approvals(io);
    std::vector<std::unique_ptr<Asked>> asked;
    for (std::size_t i = 0; i < kApprovalsMax; ++i) {
        const std::string session = "ses_" + std::to_string(i / kSessionApprovalsMax);
        asked.push_back(std::make_unique<Asked>(approvals, session));
        if (i + 1 == kSessionApprovalsMax) {
            const auto more = approvals.ask(request_of("ses_0"), nullptr);
            CHECK(more.error().code() == ErrorCode::kLimitExceeded);
        }
    }
    CHECK(approvals.ask(request_of("ses_other"), nullptr).has_error());
    asked.pop_back();
    asked.push_back(std::make_unique<Asked>(approvals, "ses_other"));
}

TEST_CASE("so many that no longer wait are known", "[governance][approvals]") {
    boost::asio::io_context io{1};
    Approvals approvals(io);
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < kSettledKnownMax + 1; ++i) {
        Asked asked(approvals, "ses_1");
        ids.push_back(asked.id);
    }
    CHECK(approvals.find_settled(ids.front()) == nullptr);
    CHECK(approvals.find_settled(ids[1]) != nullptr);
    CHECK(approvals.find_settled(ids.back()) != nullptr);
}

}  // namespace
}  // namespace cellkeep::governance
