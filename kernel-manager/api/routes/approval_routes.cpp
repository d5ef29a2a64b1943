// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/approval_routes.hpp"

#include "kernel-manager/api/bodies/order_reading.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "protocol/support/time.hpp"

#include <optional>
#include <string>
#include <utility>

namespace cellkeep::api {

namespace {

using governance::ApprovalAnswer;
using governance::Approvals;
using Answered = boost::asio::awaitable<http::Response>;

nlohmann::json approval_json(const Approvals::Pending& pending) {
    const governance::ApprovalRequest& request = pending.request;
    return {
        {"id", pending.id},
        {"session_id", request.session_id},
        {"execution_id",
         request.execution_id.empty() ? nlohmann::json() : nlohmann::json(request.execution_id)},
        {"owner", request.action.principal},
        {"server", request.action.server},
        {"tool", request.tool},
        {"reason", to_string(request.reason)},
        {"description", request.description},
        {"tool_sha256", request.action.digest},
        {"arguments", request.arguments},
        {"arguments_cut", request.arguments_cut},
        {"arguments_bytes", request.arguments_bytes},
        {"arguments_sha256", request.arguments_sha256},
        {"created_at", to_iso8601(pending.asked_at)},
        {"expires_at", to_iso8601(pending.expires_at)}};
}

Answered list_approvals(http::Request& request, const Approvals* approvals) {
    auto list = nlohmann::json::array();
    if (approvals != nullptr) {
        for (const Approvals::Pending* pending : approvals->list()) {
            if (http::may_see(request.principal, pending->request.action.principal)) {
                list.push_back(approval_json(*pending));
            }
        }
    }
    co_return http::make_json(200, {{"approvals", std::move(list)}});
}

ApprovalAnswer parse_decision(const nlohmann::json& body, FieldErrors& errors) {
    ObjectReader reader(body, "", errors);
    if (!body.is_object()) {
        return ApprovalAnswer::kDenied;
    }
    constexpr std::size_t kDecisionBytesMax = 16;
    const auto decision = reader.text("decision", kDecisionBytesMax);
    if (!reader.has("decision")) {
        reader.fail("decision", "is required");
    } else if (decision && *decision != "approve" && *decision != "deny") {
        reader.fail("decision", R"(must be "approve" or "deny")");
    }
    reader.finish();
    return decision == "approve" ? ApprovalAnswer::kApproved : ApprovalAnswer::kDenied;
}

http::Response unknown_approval(const std::string& id) {
    return http::to_response(http::make_problem(
        404, "unknown-approval", "There is no such approval", "Nothing waits for " + id + "."));
}

/// nullopt: the principal may answer this one now.
std::optional<http::Response> refuse_answer(
    const http::Request& request, const Approvals* approvals, const std::string& id) {
    const Approvals::Pending* pending = approvals == nullptr ? nullptr : approvals->find(id);
    const std::string* settled = approvals == nullptr ? nullptr : approvals->find_settled(id);
    const std::string* owner = pending != nullptr ? &pending->request.action.principal : settled;
    if (owner == nullptr || !http::may_see(request.principal, *owner)) {
        return unknown_approval(id);
    }
    if (!http::may_approve(request.principal)) {
        return http::to_response(http::make_problem(
            403,
            "approval-by-administrator",
            "Only an administrator approves",
            "Code of a session of yours waits for this: another one has to look at it."));
    }
    if (pending == nullptr) {
        return http::to_response(http::make_problem(
            409, id + " has been answered, has expired, or its code no longer waits."));
    }
    return std::nullopt;
}

Answered answer_approval(http::Request& request, std::shared_ptr<Approvals> approvals) {
    OrderReader<ApprovalAnswer> read = parse_decision;
    auto body = co_await read_order<ApprovalAnswer>(request, EmptyBody::kRefused, std::move(read));
    const std::string id = request.capture("approval");
    if (auto refused = refuse_answer(request, approvals.get(), id)) {
        co_return std::move(*refused);
    }
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    const Status settled = approvals->settle(id, body.order, request.principal.name);
    co_return settled.has_value() ? http::make_empty(204) : unknown_approval(id);
}

}  // namespace

void add_approval_routes(http::Router& router, std::shared_ptr<Approvals> approvals) {
    http::Route listing(
        http::Access::kRead, "GET", "/v1/approvals", [approvals](http::Request& request) {
            return list_approvals(request, approvals.get());
        });
    router.add(std::move(listing).without_body());
    router.add(http::Route(
        http::Access::kChange,
        "POST",
        "/v1/approvals/{approval}",
        [approvals = std::move(approvals)](http::Request& request) {
            return answer_approval(request, approvals);
        }));
}

}  // namespace cellkeep::api
