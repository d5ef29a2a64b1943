// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/branch_routes.hpp"

#include "kernel-manager/api/answers/model.hpp"
#include "kernel-manager/api/bodies/branch_body.hpp"
#include "kernel-manager/api/bodies/order_reading.hpp"
#include "kernel-manager/api/routes/branch_making.hpp"
#include "kernel-manager/api/routes/branch_start.hpp"
#include "kernel-manager/http/message/problem.hpp"

#include <boost/asio/this_coro.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::api {

namespace {

using Answer = boost::asio::awaitable<http::Response>;
using Session = SessionLookup::Session;

Answer make_branches(session::SessionService& backend, http::Request& request, Session parent) {
    OrderReader<BranchesOrder> read = parse_branches_order;
    auto body = co_await read_order<BranchesOrder>(request, EmptyBody::kAllowed, std::move(read));
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    const BranchesOrder& order = body.order;
    Session same = parent;
    std::optional<std::string> from = order.from;
    const BranchStart start =
        co_await find_start(std::move(same), std::move(from), order.on_threads);
    if (start.problem) {
        co_return http::to_response(*start.problem);
    }
    nlohmann::json answer = {{"checkpoint", start.checkpoint}, {"evicted", start.evicted}};
    nlohmann::json& branches = answer["branches"] = nlohmann::json::array();
    const auto executor = co_await boost::asio::this_coro::executor;
    auto making = std::make_shared<BranchMaking>(
        executor, backend, parent->id(), start.checkpoint, std::move(body.order));
    const auto made = co_await BranchMaking::make_all(std::move(making));
    for (const BranchMaking::Made& one : made) {
        if (one.has_value()) {
            branches.push_back({{"session", to_json(one.value()->info())}});
            continue;
        }
        branches.push_back(
            {{"error", http::to_json(explain_refusal(one.error(), *parent, start.checkpoint))}});
    }
    co_return http::make_json(201, answer);
}

}  // namespace

void add_branch_routes(
    http::Router& router, const SessionLookup& lookup, session::SessionService& backend) {
    router.add(
        {http::Access::kChange,
         "POST",
         "/v1/sessions/{id}/branches",
         lookup.with_session([&backend](http::Request& request, Session parent) -> Answer {
             return make_branches(backend, request, std::move(parent));
         })});
}

}  // namespace cellkeep::api
