// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/checkpoint_routes.hpp"

#include "kernel-manager/api/answers/checkpoint_answers.hpp"
#include "kernel-manager/api/answers/model.hpp"
#include "kernel-manager/api/bodies/checkpoint_body.hpp"
#include "kernel-manager/api/bodies/order_reading.hpp"
#include "kernel-manager/http/message/problem.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <utility>

namespace cellkeep::api {

namespace {

using Answer = boost::asio::awaitable<http::Response>;
using Session = SessionLookup::Session;

/// An interpreter that answers nonsense is one that cannot be copied.
http::Problem refused(const Error& error) {
    return error.code() == ErrorCode::kProtocol
               ? not_forkable({checkpoint::NotForkable::Why::kSystem, 0})
               : http::problem_from(error);
}

Answer make_checkpoint(http::Request& request, Session session) {
    OrderReader<checkpoint::CheckpointOrder> read = parse_checkpoint_order;
    auto body = co_await read_order<checkpoint::CheckpointOrder>(
        request, EmptyBody::kAllowed, std::move(read));
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    const auto made = co_await session->make_checkpoint(std::move(body.order));
    if (made.has_error()) {
        co_return http::to_response(refused(made.error()));
    }
    if (made.value().refused) {
        co_return http::to_response(not_forkable(*made.value().refused));
    }
    http::Response response =
        http::make_json(made.value().unchanged ? 200 : 201, to_json(made.value()));
    response.headers.add(
        "Location", "/v1/sessions/" + session->id() + "/checkpoints/" + made.value().checkpoint.id);
    co_return response;
}

Answer list_checkpoints(http::Request& /*request*/, Session session) {
    const checkpoint::CheckpointList list = co_await session->list_checkpoints();
    co_return http::make_json(200, to_json(list));
}

Answer remove_checkpoint(http::Request& request, Session session) {
    const std::string id = request.capture("ckp");
    if (session->remove_checkpoint(id).has_error()) {
        co_return http::to_response(no_checkpoint(id, session->find_gone_checkpoint(id)));
    }
    co_return http::make_empty(204);
}

Answer roll_back(http::Request& request, Session session) {
    OrderReader<checkpoint::RollbackOrder> read = parse_rollback_order;
    auto body = co_await read_order<checkpoint::RollbackOrder>(
        request, EmptyBody::kRefused, std::move(read));
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    const std::string id = body.order.checkpoint;
    const auto back = co_await session->roll_back(std::move(body.order));
    if (back.has_error() && back.error().code() == ErrorCode::kNotFound) {
        co_return http::to_response(no_checkpoint(id, session->find_gone_checkpoint(id)));
    }
    if (back.has_error()) {
        co_return http::to_response(refused(back.error()));
    }
    if (back.value().refused) {
        co_return http::to_response(not_forkable(*back.value().refused));
    }
    nlohmann::json answer = to_json(session->info());
    answer.update(to_json(back.value()));
    co_return http::make_json(200, answer);
}

}  // namespace

void add_checkpoint_routes(http::Router& router, const SessionLookup& lookup) {
    using http::Access;
    const char* const all = "/v1/sessions/{id}/checkpoints";
    const char* const one = "/v1/sessions/{id}/checkpoints/{ckp}";
    router.add({Access::kChange, "POST", all, lookup.with_session(make_checkpoint)});
    router.add(http::Route(Access::kRead, "GET", all, lookup.with_session(list_checkpoints))
                   .without_body());
    router.add(http::Route(Access::kChange, "DELETE", one, lookup.with_session(remove_checkpoint))
                   .without_body());
    router.add(
        {Access::kChange, "POST", "/v1/sessions/{id}/rollback", lookup.with_session(roll_back)});
}

}  // namespace cellkeep::api
