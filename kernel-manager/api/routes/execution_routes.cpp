// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/execution_routes.hpp"

#include "kernel-manager/api/answers/execution_answer.hpp"
#include "kernel-manager/api/answers/refusals.hpp"
#include "kernel-manager/api/bodies/order_reading.hpp"
#include "kernel-manager/api/bodies/request_body.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "protocol/json.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

namespace cellkeep::api {

namespace {

using ExecutionList = std::vector<std::shared_ptr<session::Execution>>;

/// Digits only, 1 to kPageExecutionsMax.
std::optional<std::size_t> parse_page(const std::string& text) {
    std::size_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data(), end, value);
    if (failed != std::errc() || stop != end || value < 1 || value > kPageExecutionsMax) {
        return std::nullopt;
    }
    return value;
}

http::Response list_page(
    const http::Request& request, const ExecutionList& all, std::size_t limit) {
    auto at = all.begin();
    if (const auto after = request.target.find_query("after")) {
        at = std::find_if(
            all.begin(), all.end(), [&](const auto& one) { return one->id() == *after; });
        if (at == all.end()) {
            return unknown_cursor();
        }
        ++at;
    }
    nlohmann::json page = nlohmann::json::array();
    for (; at != all.end() && page.size() < limit; ++at) {
        page.push_back(summary_json(**at));
    }
    nlohmann::json next = nullptr;
    if (at != all.end()) {
        next = page.back()["id"];
    }
    return http::make_json(200, {{"executions", std::move(page)}, {"next", std::move(next)}});
}

/// What a client asked for besides the execution.
struct Wishes {
    bool outputs = false;
    bool interrupt_on_disconnect = false;
};

/// For another program in this process: the execution that the answer waits for.
nlohmann::json write_awaited(const std::string& execution, const Wishes& wishes) {
    return {
        {"execution", execution},
        {"outputs", wishes.outputs},
        {"interrupt_on_disconnect", wishes.interrupt_on_disconnect}};
}

AnswerPlan plan_answer(
    const std::shared_ptr<session::Session>& session,
    const std::shared_ptr<session::Execution>& execution,
    const Wishes& wishes) {
    AnswerPlan plan;
    plan.execution = execution;
    plan.location = "/v1/sessions/" + session->id() + "/executions/" + execution->id();
    plan.outputs = wishes.outputs ? Outputs::kInclude : Outputs::kOmit;
    plan.awaited = write_awaited(execution->id(), wishes);
    if (wishes.interrupt_on_disconnect) {
        plan.on_abandoned = [weak = std::weak_ptr(session), id = execution->id()] {
            if (const auto alive = weak.lock()) {
                (void)alive->interrupt_execution(id);  // Ignored: it has ended by itself.
            }
        };
    }
    return plan;
}

/// The answer that another program was to give cannot be given.
http::Response unknown_awaited(const http::Request& request) {
    http::Problem problem = http::make_problem(
        503, "The execution was lost when the server was replaced by another program.");
    problem.instance = request.target.path;
    return http::to_response(problem);
}

}  // namespace

std::string execution_of(const std::string& awaited) {
    const auto text = protocol::parse_json(awaited, "awaited");
    return text.has_value() ? text.value().value("execution", "") : std::string();
}

void ExecutionRoutes::add_to(http::Router& router) {
    using http::Access;
    const auto plain = [this](auto member) {
        return [this, member](http::Request& request) { return (this->*member)(request); };
    };
    const auto within = [this](auto member) {
        return lookup_.with_session([this, member](http::Request& request, Session session) {
            return (this->*member)(request, std::move(session));
        });
    };
    const std::string all = "/v1/sessions/{id}/executions";
    const std::string one = all + "/{exe}";
    router.add(http::Route(Access::kChange, "POST", all, within(&ExecutionRoutes::execute)));
    const auto add = [&](Access access, const char* method, const std::string& path, auto handler) {
        router.add(http::Route(access, method, path, std::move(handler)).without_body());
    };
    add(Access::kRead, "GET", all, plain(&ExecutionRoutes::list));
    add(Access::kRead, "GET", one, plain(&ExecutionRoutes::get));
    add(Access::kRead, "GET", one + "/events", within(&ExecutionRoutes::events));
    add(Access::kChange, "POST", one + "/interrupt", within(&ExecutionRoutes::interrupt));
}

ExecutionRoutes::Answer ExecutionRoutes::go_on(http::Request& request, Session session) {
    const auto awaited = protocol::parse_json(request.awaited, "awaited");
    const nlohmann::json text = awaited.has_value() ? awaited.value() : nlohmann::json::object();
    const auto execution = session->find_execution(text.value("execution", ""));
    if (!execution) {
        co_return unknown_awaited(request);
    }
    AnswerPlan plan = plan_answer(
        session,
        execution,
        {text.value("outputs", false), text.value("interrupt_on_disconnect", false)});
    if (text.contains("lines")) {
        plan.form = text.value("lines", false) ? Form::kLines : Form::kServerSent;
        plan.after = text.value("after", std::uint64_t{0});
        plan.goes_on = true;
    }
    http::Response response = co_await give_answer(request, std::move(plan));
    co_return response;
}

ExecutionRoutes::Answer ExecutionRoutes::execute(http::Request& request, Session session) {
    if (!request.awaited.empty()) {
        http::Response response = co_await go_on(request, std::move(session));
        co_return response;
    }
    const ChosenForm form = choose_form(request);
    if (form.problem) {
        co_return http::to_response(*form.problem);
    }
    OrderReader<ExecutionOrder> read = [running = session->offered_languages()](
                                           const nlohmann::json& value, FieldErrors& errors) {
        return parse_execution(value, running, errors);
    };
    auto body = co_await read_order<ExecutionOrder>(request, EmptyBody::kRefused, std::move(read));
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    ExecutionOrder order = std::move(body.order);
    order.request.passes = true;
    // Only a key can name an execution that there was before.
    const ExecutionList known =
        order.request.idempotency_key.empty() ? ExecutionList() : session->list_executions();
    const auto begun = session->begin(std::move(order.request));
    if (begun.has_error()) {
        co_return refuse_execution(begun.error(), session.get());
    }
    AnswerPlan plan =
        plan_answer(session, begun.value(), {order.outputs, order.interrupt_on_disconnect});
    plan.form = form.form;
    if (std::find(known.begin(), known.end(), plan.execution) == known.end()) {
        // The history of a session is its owner's, also of executions that another one began.
        co_await history_.note(plan.execution, session->owner());
    } else {
        plan.after = form.after;
    }
    http::Response response = co_await give_answer(request, std::move(plan));
    co_return response;
}

ExecutionRoutes::Answer ExecutionRoutes::list(http::Request& request) {
    const auto limit = parse_page(
        request.target.find_query("limit").value_or(std::to_string(kPageExecutionsDefault)));
    if (!limit) {
        co_return http::to_response(http::make_problem(
            400, "limit must be a number from 1 to " + std::to_string(kPageExecutionsMax) + "."));
    }
    const auto session = lookup_.find(request);
    if (session == nullptr) {
        http::Response gone = co_await history_.answer_list(request, *limit);
        co_return gone;
    }
    co_return list_page(request, session->list_executions(), *limit);
}

ExecutionRoutes::Answer ExecutionRoutes::get(http::Request& request) {
    const auto session = lookup_.find(request);
    const auto execution = session ? session->find_execution(request.capture("exe")) : nullptr;
    if (!execution) {
        http::Response stored = co_await history_.answer_execution(request);
        if (session == nullptr && stored.status == 404) {
            http::Response gone = co_await history_.answer_session(request);
            co_return gone;
        }
        co_return stored;
    }
    co_return http::make_json_text(200, to_text(*execution, asked_outputs(request)));
}

ExecutionRoutes::Answer ExecutionRoutes::events(http::Request& request, Session session) {
    if (!request.awaited.empty()) {
        http::Response response = co_await go_on(request, std::move(session));
        co_return response;
    }
    const auto execution = session->find_execution(request.capture("exe"));
    if (!execution) {
        co_return unknown_execution(request);
    }
    const bool outputs = asked_outputs(request) == Outputs::kInclude;
    co_return resume_events(request, execution, write_awaited(execution->id(), {outputs, false}));
}

ExecutionRoutes::Answer ExecutionRoutes::interrupt(http::Request& request, Session session) {
    co_return answer_interrupt(request, session->interrupt_execution(request.capture("exe")));
}

}  // namespace cellkeep::api
