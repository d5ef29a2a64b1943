// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/one_shot_routes.hpp"

#include "kernel-manager/api/answers/execution_answer.hpp"
#include "kernel-manager/api/answers/refusals.hpp"
#include "kernel-manager/api/bodies/order_reading.hpp"
#include "kernel-manager/http/message/problem.hpp"

#include <utility>

namespace cellkeep::api {

namespace {

boost::asio::awaitable<void> wait_until_gone(std::shared_ptr<Completion<bool>> gone) {
    (void)co_await Completion<bool>::wait(gone);
}

}  // namespace

void OneShotRoutes::add_to(http::Router& router) {
    using http::Access;
    const auto bind = [this](auto member) {
        return [this, member](http::Request& request) { return (this->*member)(request); };
    };
    const std::string one = "/v1/executions/{exe}";
    router.add(
        http::Route(Access::kChange, "POST", "/v1/executions", bind(&OneShotRoutes::execute)));
    const auto add = [&](Access access, const char* method, const std::string& path, auto member) {
        router.add(http::Route(access, method, path, bind(member)).without_body());
    };
    add(Access::kRead, "GET", one, &OneShotRoutes::get);
    add(Access::kRead, "GET", one + "/events", &OneShotRoutes::events);
    add(Access::kChange, "POST", one + "/interrupt", &OneShotRoutes::interrupt);
}

std::shared_ptr<OneShot> OneShotRoutes::find(const http::Request& request) {
    auto run = one_shots_.find(request.capture("exe"));
    const bool visible = run != nullptr && http::may_see(request.principal, run->owner);
    return visible ? run : nullptr;
}

OneShotRoutes::Answer OneShotRoutes::execute(http::Request& request) {
    const ChosenForm form = choose_form(request);
    if (form.problem) {
        co_return http::to_response(*form.problem);
    }
    OrderReader<OneShotOrder> read = [offer = offer_of(backend_)](
                                         const nlohmann::json& value, FieldErrors& errors) {
        return parse_one_shot(value, offer, errors);
    };
    auto body = co_await read_order<OneShotOrder>(request, EmptyBody::kRefused, std::move(read));
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    OneShotOrder order = std::move(body.order);
    order.options.owner = request.principal.name;
    AnswerPlan plan;
    plan.form = form.form;
    plan.outputs = order.execution.outputs ? Outputs::kInclude : Outputs::kOmit;
    plan.reasoning = order.execution.request.reasoning;
    plan.metadata = order.execution.request.metadata;
    const bool interrupts = order.execution.interrupt_on_disconnect;
    const auto begun = co_await one_shots_.begin(std::move(order), request.principal.name);
    if (begun.has_error()) {
        co_return refuse_execution(begun.error(), nullptr);
    }
    const OneShot& run = begun.value().run;
    if (begun.value().from == OneShots::From::kRun) {
        co_await history_.note(run.execution, run.owner);
    } else if (begun.value().from == OneShots::From::kKey) {
        plan.after = form.after;
    }
    plan.execution = run.execution;
    plan.location = "/v1/executions/" + run.execution->id();
    plan.origin = begun.value().cached ? Origin::kCache : Origin::kRun;
    plan.settled = [gone = run.gone] { return wait_until_gone(gone); };
    if (interrupts) {
        plan.on_abandoned = [weak = run.session, id = run.execution->id()] {
            if (const auto alive = weak.lock()) {
                (void)alive->interrupt_execution(id);  // Ignored: it has ended by itself.
            }
        };
    }
    http::Response response = co_await give_answer(request, std::move(plan));
    co_return response;
}

OneShotRoutes::Answer OneShotRoutes::get(http::Request& request) {
    const auto run = find(request);
    if (run == nullptr) {
        http::Response stored = co_await history_.answer_execution(request);
        co_return stored;
    }
    co_return http::make_json_text(200, to_text(*run->execution, asked_outputs(request)));
}

OneShotRoutes::Answer OneShotRoutes::events(http::Request& request) {
    const auto run = find(request);
    if (run == nullptr) {
        co_return unknown_execution(request);
    }
    co_return resume_events(request, run->execution, nullptr);
}

OneShotRoutes::Answer OneShotRoutes::interrupt(http::Request& request) {
    const auto run = find(request);
    if (run == nullptr) {
        co_return unknown_execution(request);
    }
    const auto session = run->session.lock();
    if (session == nullptr) {
        co_return answer_interrupt(
            request, Error(ErrorCode::kConflict, run->execution->id() + " has finished"));
    }
    co_return answer_interrupt(request, session->interrupt_execution(run->execution->id()));
}

}  // namespace cellkeep::api
