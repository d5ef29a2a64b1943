// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/batch_routes.hpp"

#include "kernel-manager/api/answers/event_stream.hpp"
#include "kernel-manager/api/bodies/batch_body.hpp"
#include "kernel-manager/api/bodies/order_reading.hpp"
#include "kernel-manager/api/bodies/request_body.hpp"
#include "kernel-manager/api/routes/branch_start.hpp"
#include "kernel-manager/http/message/negotiation.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "protocol/limits.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/error_code.hpp>

#include <charconv>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::api {

namespace {

namespace asio = boost::asio;

using Guard = std::shared_ptr<DisconnectGuard>;  // null: nothing happens

/// What a client gets while no item ends, so that it knows that the server is there.
constexpr std::string_view kHeartbeatLine = "{\"heartbeat\":{}}\n";

/// Says when it is time for one.
struct Pulse {
    explicit Pulse(const asio::any_io_executor& executor) : timer(executor) {}
    asio::steady_timer timer;
    bool is_due = false;
};

void arm(const std::shared_ptr<Pulse>& pulse, const std::shared_ptr<BatchRun>& batch) {
    pulse->is_due = false;
    pulse->timer.expires_after(limits::kEventHeartbeat);
    pulse->timer.async_wait([weak_pulse = std::weak_ptr(pulse), weak_batch = std::weak_ptr(batch)](
                                const boost::system::error_code& cancelled) {
        const auto waiting = weak_pulse.lock();
        const auto alive = weak_batch.lock();
        if (!cancelled && waiting && alive) {
            waiting->is_due = true;
            alive->wake();
        }
    });
}

http::Response unknown_batch(const http::Request& request) {
    return http::to_response(http::make_problem(
        404,
        "unknown-batch",
        "No such batch",
        "There is no batch " + request.capture("bat") + ", or it is no longer remembered."));
}

/// 406 unless lines of JSON are acceptable.
std::optional<http::Response> refuse_form(const http::Request& request) {
    const std::string lines(media_type(EventFraming::kLines));
    if (http::choose_media_type(request.headers.get("Accept"), {lines, "application/json"})) {
        return std::nullopt;
    }
    return http::to_response(
        http::make_problem(406, "The lines of a batch are given as " + lines + "."));
}

/// Digits only; 0 without it.
std::optional<std::size_t> asked_line(const http::Request& request) {
    const std::string text = request.target.find_query("after").value_or("0");
    std::size_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data(), end, value);
    const bool valid = failed == std::errc() && stop == end && value <= kBatchItemsMax + 1;
    return valid ? std::optional(value) : std::nullopt;
}

/// From that line on, and the summary.
asio::awaitable<Status> write_lines(
    http::BodyWriter& writer, std::shared_ptr<BatchRun> batch, std::size_t number, Guard guard) {
    writer.watch([weak = std::weak_ptr(batch)] {
        if (const auto alive = weak.lock()) {
            alive->wake();
        }
    });
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    const auto pulse = std::make_shared<Pulse>(executor);
    Status written = ok();
    while (written.has_value() && !writer.gone()) {
        arm(pulse, batch);
        std::function<bool()> given_up = [&writer, pulse] {
            return pulse->is_due || writer.gone();
        };
        const BatchRun::Line line = co_await batch->wait_for_line(number, std::move(given_up));
        if (line != nullptr) {
            written = co_await writer.write(*line);
            ++number;
        } else if (pulse->is_due) {
            written = co_await writer.write(kHeartbeatLine);
        } else {
            break;
        }
    }
    pulse->timer.cancel();
    writer.watch({});
    if (guard && written.has_value() && !writer.gone()) {
        guard->dismiss();
    } else if (guard) {
        guard->act();
    }
    co_return written;
}

http::Response stream_lines(
    std::shared_ptr<BatchRun> batch, std::size_t after, const Guard& guard) {
    http::Response response;
    response.headers.add("Content-Type", std::string(media_type(EventFraming::kLines)));
    response.headers.add("Content-Location", "/v1/batch/" + batch->id());
    // Proxies that gather answers before they pass them on are asked not to.
    response.headers.add("X-Accel-Buffering", "no");
    response.body =
        http::StreamBody{[batch = std::move(batch), after, guard](http::BodyWriter& writer) {
            return write_lines(writer, batch, after, guard);
        }};
    return response;
}

}  // namespace

void BatchRoutes::add_to(http::Router& router) {
    using http::Access;
    const auto bind = [this](auto member) {
        return [this, member](http::Request& request) { return (this->*member)(request); };
    };
    const std::string one = "/v1/batch/{bat}";
    router.add(http::Route(Access::kChange, "POST", "/v1/batch", bind(&BatchRoutes::run)));
    const auto add = [&](Access access, const char* method, const std::string& path, auto member) {
        router.add(http::Route(access, method, path, bind(member)).without_body());
    };
    add(Access::kRead, "GET", one, &BatchRoutes::get);
    add(Access::kRead, "GET", one + "/lines", &BatchRoutes::follow);
    add(Access::kChange, "DELETE", one, &BatchRoutes::remove);
}

std::shared_ptr<BatchRun> BatchRoutes::find(const http::Request& request) {
    auto batch = batches_.find(request.capture("bat"));
    const bool visible = batch != nullptr && http::may_see(request.principal, batch->owner());
    return visible ? batch : nullptr;
}

BatchRoutes::Answer BatchRoutes::run(http::Request& request) {
    if (auto refused = refuse_form(request)) {
        co_return std::move(*refused);
    }
    OrderReader<BatchOrder> read = [offer = offer_of(backend_)](
                                       const nlohmann::json& value, FieldErrors& errors) {
        return parse_batch_order(value, offer, errors);
    };
    auto body = co_await read_order<BatchOrder>(request, EmptyBody::kRefused, std::move(read));
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    BatchOrder order = std::move(body.order);
    BatchRun::Start start;
    if (order.from) {
        StateOrder wanted = *order.from;
        start.parent = lookup_.find(request.principal, wanted.session);
        auto parent = start.parent;
        BranchStart found = co_await find_state(std::move(parent), std::move(wanted));
        if (found.problem) {
            co_return http::to_response(*found.problem);
        }
        start.checkpoint = std::move(found.checkpoint);
    }
    const bool interrupts = order.interrupt_on_disconnect;
    const auto executor = co_await asio::this_coro::executor;
    const auto begun =
        batches_.begin(executor, request.principal.name, std::move(start), std::move(order));
    if (begun.has_error()) {
        co_return http::to_response(http::problem_from(begun.error()));
    }
    const std::shared_ptr<BatchRun>& batch = begun.value();
    if (http::prefers(request.headers.get("Prefer"), "respond-async")) {
        http::Response later = http::make_json(202, batch->describe());
        later.headers.add("Location", "/v1/batch/" + batch->id());
        later.headers.add("Preference-Applied", "respond-async");
        co_return later;
    }
    Guard guard;
    if (interrupts) {
        guard = std::make_shared<DisconnectGuard>([batch] { batch->stop("disconnected"); });
    }
    co_return stream_lines(batch, 0, guard);
}

BatchRoutes::Answer BatchRoutes::get(http::Request& request) {
    const auto batch = find(request);
    if (batch == nullptr) {
        co_return unknown_batch(request);
    }
    co_return http::make_json(200, batch->describe());
}

BatchRoutes::Answer BatchRoutes::follow(http::Request& request) {
    const auto batch = find(request);
    if (batch == nullptr) {
        co_return unknown_batch(request);
    }
    if (auto refused = refuse_form(request)) {
        co_return std::move(*refused);
    }
    const auto after = asked_line(request);
    if (!after) {
        co_return http::to_response(
            http::make_problem(400, "after must be the number of lines that you have."));
    }
    co_return stream_lines(batch, *after, nullptr);
}

BatchRoutes::Answer BatchRoutes::remove(http::Request& request) {
    const auto batch = find(request);
    if (batch == nullptr) {
        co_return unknown_batch(request);
    }
    batch->stop("deleted");
    co_await batch->wait_until_finished();
    batches_.forget(batch->id());
    co_return http::make_empty(204);
}

}  // namespace cellkeep::api
