// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/merge_routes.hpp"

#include "kernel-manager/api/answers/checkpoint_answers.hpp"
#include "kernel-manager/api/answers/merge_answers.hpp"
#include "kernel-manager/api/bodies/merge_body.hpp"
#include "kernel-manager/api/bodies/order_reading.hpp"
#include "kernel-manager/http/message/problem.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::api {

namespace {

using Answer = boost::asio::awaitable<http::Response>;
using Session = SessionLookup::Session;

constexpr std::string_view kSessionPrefix = "ses_";

http::Response no_other_session(const std::string& id) {
    return http::to_response(http::make_problem(
        404,
        "unknown-session",
        "No such session",
        "There is no session " + id + ", or it has ended."));
}

Answer compare(const SessionLookup& lookup, http::Request& request, Session session) {
    ComparisonQuery query;
    if (const auto problem = parse_comparison(request.target, query)) {
        co_return http::to_response(*problem);
    }
    nlohmann::json answer = {
        {"against", query.against},
        {"checkpoint", query.later ? nlohmann::json(*query.later) : nlohmann::json(nullptr)}};
    checkpoint::ComparisonOrder order;
    order.against = query.against;
    order.later = query.later;
    order.page = std::move(query.page);
    if (query.against.starts_with(kSessionPrefix)) {
        const Session other = lookup.find(request.principal, query.against);
        if (other == nullptr) {
            co_return no_other_session(query.against);
        }
        auto looked = co_await other->look_at_files();
        if (looked.has_error()) {
            co_return http::to_response(http::problem_from(looked.error()));
        }
        order.other = looked.value().held;
    } else {
        const auto branch = session->info().branch;
        order.begun = branch && branch->checkpoint == query.against;
    }
    const auto changes = co_await session->compare_files(std::move(order));
    if (changes.has_error() && changes.error().code() == ErrorCode::kNotFound) {
        const bool first = changes.error().field() == "against";
        const std::string& id = first ? query.against : query.later.value_or(query.against);
        co_return http::to_response(no_checkpoint(id, session->find_gone_checkpoint(id)));
    }
    if (changes.has_error()) {
        co_return http::to_response(http::problem_from(changes.error()));
    }
    answer.update(to_json(changes.value()));
    co_return http::make_json(200, answer);
}

Answer merge(const SessionLookup& lookup, http::Request& request, Session session) {
    OrderReader<MergeRequest> read = parse_merge;
    auto body = co_await read_order<MergeRequest>(request, EmptyBody::kRefused, std::move(read));
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    const std::string from = body.order.from;
    const Session branch = lookup.find(request.principal, from);
    if (branch == nullptr) {
        co_return no_other_session(from);
    }
    const auto origin = branch->info().branch;
    if (!origin || origin->parent != session->id()) {
        co_return http::to_response(http::make_problem(
            409,
            "not-a-branch",
            "It is no branch of this session",
            "Session " + branch->id() + " was not made from session " + session->id() + "."));
    }
    auto looked = co_await branch->look_at_files();
    if (looked.has_error()) {
        co_return http::to_response(http::problem_from(looked.error()));
    }
    auto theirs = std::move(looked.value());
    if (theirs.base == nullptr) {
        co_return http::to_response(
            http::make_problem(503, "It is not known what files the branch was made with."));
    }
    const auto merged =
        co_await session->merge_files(std::move(theirs), std::move(body.order.order));
    if (merged.has_error()) {
        co_return http::to_response(http::problem_from(merged.error()));
    }
    co_return answer_merge(merged.value(), branch->id());
}

}  // namespace

void add_merge_routes(http::Router& router, const SessionLookup& lookup) {
    using http::Access;
    const auto with = [&lookup](auto handler) {
        return lookup.with_session(
            [&lookup, handler](http::Request& request, Session session) -> Answer {
                return handler(lookup, request, std::move(session));
            });
    };
    router.add(
        http::Route(Access::kRead, "GET", "/v1/sessions/{id}/diff", with(compare)).without_body());
    router.add({Access::kChange, "POST", "/v1/sessions/{id}/merge", with(merge)});
}

}  // namespace cellkeep::api
