// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/execution_answer.hpp"

#include "kernel-manager/http/message/negotiation.hpp"
#include "protocol/json.hpp"
#include "protocol/support/wakeup.hpp"

#include <boost/asio/execution/context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace cellkeep::api {

namespace asio = boost::asio;

namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kServerSent = "text/event-stream";
constexpr std::string_view kLines = "application/x-ndjson";

http::Response stream_response(EventStream stream, bool goes_on = false) {
    http::Response response;
    if (!stream.awaited.is_null()) {
        stream.awaited["lines"] = stream.framing == EventFraming::kLines;
    }
    response.headers.add("Content-Type", std::string(media_type(stream.framing)));
    // Proxies that gather answers before they pass them on are asked not to.
    response.headers.add("X-Accel-Buffering", "no");
    response.body = http::StreamBody{[stream = std::move(stream)](http::BodyWriter& writer) {
        return write_events(writer, stream);
    }};
    std::get<http::StreamBody>(response.body).goes_on = goes_on;
    return response;
}

/// Calls `action` only if no other client waits for this execution.
std::function<void()> unless_others_listen(
    const std::shared_ptr<session::Execution>& execution, std::function<void()> action) {
    if (!action) {
        return {};
    }
    return [execution, action = std::move(action)] {
        if (execution->listeners() == 0 && !execution->result()) {
            action();
        }
    };
}

/// Waits for the end of the execution, of its client where that means something, or until another
/// program waits for it.
asio::awaitable<void> wait_for_end(
    http::ClientWatch* client,
    const AnswerPlan& plan,
    const std::shared_ptr<session::Execution>& execution) {
    const auto executor = co_await asio::this_coro::executor;
    const auto wakeup = std::make_shared<Wakeup>(
        static_cast<asio::io_context&>(asio::query(executor, asio::execution::context)));
    const auto news = execution->subscribe([wakeup, weak = std::weak_ptr(execution)] {
        if (const auto alive = weak.lock(); alive && alive->result()) {
            wakeup->wake();
        }
    });
    // A client whose going means nothing need not be watched.
    const bool is_watched = client != nullptr && plan.on_abandoned;
    if (is_watched) {
        client->watch([wakeup] { wakeup->wake(); });
    }
    if (client != nullptr && !plan.awaited.is_null()) {
        client->await(protocol::dump_json(plan.awaited), [wakeup] { wakeup->wake(); });
    }
    const auto is_over = [client, is_watched] {
        return client != nullptr && (client->is_passed() || (is_watched && client->gone()));
    };
    while (!execution->result() && !is_over()) {
        co_await wakeup->wait();
    }
    if (is_watched) {
        client->watch({});
    }
    if (client != nullptr) {
        client->await({}, nullptr);
    }
}

/// Digits only.
std::optional<std::uint64_t> parse_sequence(std::string_view text) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data(), end, value);
    if (failed != std::errc() || stop != end) {
        return std::nullopt;
    }
    return value;
}

/// Last-Event-ID; 0 without one.
std::optional<std::uint64_t> last_event(const http::Request& request) {
    const std::string* last = request.headers.find("Last-Event-ID");
    return last == nullptr ? std::optional<std::uint64_t>(0) : parse_sequence(*last);
}

/// The execution as this request gets it, in any phase.
std::function<protocol::TextPieces(const session::Execution&)> make_view(const AnswerPlan& plan) {
    return [outputs = plan.outputs,
            origin = plan.origin,
            annotations =
                Annotations{plan.reasoning, plan.metadata}](const session::Execution& execution) {
        if (!execution.result()) {
            return unfinished_text(execution);
        }
        return finished_text(execution, outputs, origin, annotations);
    };
}

}  // namespace

std::optional<std::uint64_t> asked_place(const http::Request& request) {
    const auto after = parse_sequence(request.target.find_query("after").value_or("0"));
    const auto seen = last_event(request);
    if (!after || !seen) {
        return std::nullopt;
    }
    return std::max(*after, *seen);
}

http::Problem bad_place() {
    return http::make_problem(400, "after and Last-Event-ID must be the number of an event, or 0.");
}

ChosenForm choose_form(const http::Request& request) {
    const auto chosen =
        http::choose_media_type(request.headers.get("Accept"), {kJson, kServerSent, kLines});
    ChosenForm form;
    const auto place = last_event(request);
    if (!place) {
        form.problem = bad_place();
        return form;
    }
    form.after = *place;
    if (!chosen) {
        form.problem = http::make_problem(
            406,
            "Executions are answered as application/json, text/event-stream or "
            "application/x-ndjson.");
    } else if (http::prefers(request.headers.get("Prefer"), "respond-async")) {
        form.form = Form::kLater;
    } else if (*chosen == 1) {
        form.form = Form::kServerSent;
    } else if (*chosen == 2) {
        form.form = Form::kLines;
    }
    return form;
}

Outputs asked_outputs(const http::Request& request) {
    return request.target.find_query("outputs") == "true" ? Outputs::kInclude : Outputs::kOmit;
}

asio::awaitable<http::Response> give_answer(http::Request& request, AnswerPlan plan) {
    const auto execution = plan.execution;
    const auto view = make_view(plan);
    plan.on_abandoned = unless_others_listen(execution, std::move(plan.on_abandoned));
    http::Response response;
    if (plan.form == Form::kLater) {
        response = http::make_json_text(202, view(*execution));
        response.headers.add("Preference-Applied", "respond-async");
    } else if (plan.form == Form::kWhole) {
        co_await wait_for_end(request.client, plan, execution);
        const bool is_passed = request.client != nullptr && request.client->is_passed();
        if (!execution->result() && !is_passed) {
            plan.on_abandoned();
        }
        if (!execution->result() || is_passed) {
            co_return http::make_empty(204);  // the client has gone, or another program answers
        }
        if (plan.settled) {
            co_await plan.settled();
        }
        response = http::make_json_text(200, view(*execution));
    } else {
        EventStream stream;
        stream.execution = execution;
        stream.framing =
            plan.form == Form::kLines ? EventFraming::kLines : EventFraming::kServerSent;
        stream.after = plan.after;
        if (plan.on_abandoned) {
            stream.on_disconnect = std::make_shared<DisconnectGuard>(std::move(plan.on_abandoned));
        }
        stream.answer = view;
        stream.awaited = std::move(plan.awaited);
        response = stream_response(std::move(stream), plan.goes_on);
    }
    response.headers.add("Location", plan.location);
    co_return response;
}

http::Response resume_events(
    const http::Request& request,
    const std::shared_ptr<session::Execution>& execution,
    nlohmann::json awaited) {
    const auto chosen =
        http::choose_media_type(request.headers.get("Accept"), {kServerSent, kLines});
    if (!chosen) {
        return http::to_response(http::make_problem(
            406, "Events are given as text/event-stream or application/x-ndjson."));
    }
    const auto after = asked_place(request);
    if (!after) {
        return http::to_response(bad_place());
    }
    if (execution->result() && *after >= execution->events().last_sequence()) {
        return http::make_empty(204);  // an EventSource comes back until it gets this
    }
    EventStream stream;
    stream.execution = execution;
    stream.framing = *chosen == 1 ? EventFraming::kLines : EventFraming::kServerSent;
    stream.after = *after;
    stream.answer = [outputs = asked_outputs(request)](const session::Execution& finished) {
        return finished_text(finished, outputs);
    };
    stream.awaited = std::move(awaited);
    return stream_response(std::move(stream));
}

}  // namespace cellkeep::api
