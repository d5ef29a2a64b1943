// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/process_routes.hpp"

#include "kernel-manager/api/answers/execution_answer.hpp"
#include "kernel-manager/api/answers/process_answers.hpp"
#include "kernel-manager/api/answers/process_socket.hpp"
#include "kernel-manager/api/bodies/order_reading.hpp"
#include "kernel-manager/api/bodies/process_body.hpp"
#include "kernel-manager/http/message/problem.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::api {

namespace {

using Answer = boost::asio::awaitable<http::Response>;
using Session = SessionLookup::Session;
using process::Command;
using process::CommandTable;

http::Response no_table() {
    return http::to_response(http::make_problem(501, "Processes are not offered here."));
}

/// 204, or the problem; an unknown process is one of its own kind.
http::Response settle(const http::Request& request, const Status& done) {
    if (done.has_error() && done.error().code() == ErrorCode::kNotFound) {
        return http::to_response(no_process(request.capture("prc")));
    }
    return done.has_error() ? http::to_response(http::problem_from(done.error()))
                            : http::make_empty(204);
}

Answer start_process(http::Request& request, Session session) {
    OrderReader<process::CommandOrder> read = parse_command_order;
    auto body =
        co_await read_order<process::CommandOrder>(request, EmptyBody::kRefused, std::move(read));
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    CommandTable* table = session->commands();
    if (table == nullptr) {
        co_return no_table();
    }
    const auto started = co_await table->start(std::move(body.order));
    if (started.has_error()) {
        co_return http::to_response(http::problem_from(started.error()));
    }
    const auto& command = started.value();
    http::Response response = http::make_json(201, to_json(command->info()));
    response.headers.add(
        "Location", "/v1/sessions/" + session->id() + "/processes/" + command->id());
    co_return response;
}

Answer list_processes(http::Request& /*request*/, Session session) {
    nlohmann::json processes = nlohmann::json::array();
    if (const CommandTable* table = session->commands()) {
        for (const auto& command : table->list()) {
            processes.push_back(to_json(command->info()));
        }
    }
    co_return http::make_json(
        200, {{"processes", std::move(processes)}, {"limits", process_limits()}});
}

/// A route of one process that is there.
http::Handler with_process(
    const SessionLookup& lookup,
    std::function<http::Response(const http::Request&, const std::shared_ptr<Command>&)> answer) {
    return lookup.with_session(
        [answer = std::move(answer)](http::Request& request, Session session) -> Answer {
            const std::string id = request.capture("prc");
            const CommandTable* table = session->commands();
            const auto command = table == nullptr ? nullptr : table->find(id);
            co_return command == nullptr ? http::to_response(no_process(id))
                                         : answer(request, command);
        });
}

Answer write_input(http::Request& request, Session session) {
    OrderReader<InputOrder> read = parse_input_order;
    auto body = co_await read_order<InputOrder>(request, EmptyBody::kRefused, std::move(read));
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    const InputOrder& order = body.order;
    CommandTable* table = session->commands();
    co_return table == nullptr
        ? no_table()
        : settle(request, table->write(request.capture("prc"), order.bytes, order.close));
}

Answer send_signal(http::Request& request, Session session) {
    OrderReader<int> read = parse_signal_order;
    auto body = co_await read_order<int>(request, EmptyBody::kRefused, std::move(read));
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    CommandTable* table = session->commands();
    co_return table == nullptr ? no_table()
                               : settle(request, table->signal(request.capture("prc"), body.order));
}

Answer resize_terminal(http::Request& request, Session session) {
    OrderReader<process::TerminalSize> read = parse_size_order;
    auto body =
        co_await read_order<process::TerminalSize>(request, EmptyBody::kRefused, std::move(read));
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    CommandTable* table = session->commands();
    co_return table == nullptr ? no_table()
                               : settle(request, table->resize(request.capture("prc"), body.order));
}

Answer open_socket(http::Request& request, Session session) {
    const std::string id = request.capture("prc");
    const CommandTable* table = session->commands();
    auto command = table == nullptr ? nullptr : table->find(id);
    if (command == nullptr) {
        co_return http::to_response(no_process(id));
    }
    if (!request.websocket) {
        co_return http::to_response(
            http::make_problem(426, "This address is for WebSockets: send an Upgrade request."));
    }
    const auto after = asked_place(request);
    if (!after) {
        co_return http::to_response(bad_place());
    }
    http::WebSocketUpgrade upgrade;
    upgrade.run = [session,
                   command,
                   place = std::min(*after, command->output().total()),
                   thread = request.work_thread](std::shared_ptr<http::WebSocket> socket) {
        return serve_process(std::move(socket), session, command, place, thread);
    };
    http::Response response;
    response.status = 101;
    response.body = std::move(upgrade);
    co_return response;
}

Answer remove_process(http::Request& request, Session session) {
    CommandTable* table = session->commands();
    co_return table == nullptr ? http::to_response(no_process(request.capture("prc")))
                               : settle(request, table->remove(request.capture("prc")));
}

http::Response get_process(const http::Request& /*request*/, const std::shared_ptr<Command>& one) {
    return http::make_json(200, to_json(one->info()));
}

}  // namespace

void add_process_routes(http::Router& router, const SessionLookup& lookup) {
    using http::Access;
    const std::string all = "/v1/sessions/{id}/processes";
    const std::string one = all + "/{prc}";
    router.add({Access::kChange, "POST", all, lookup.with_session(start_process)});
    router.add({Access::kChange, "POST", one + "/stdin", lookup.with_session(write_input)});
    router.add({Access::kChange, "POST", one + "/signal", lookup.with_session(send_signal)});
    router.add({Access::kChange, "POST", one + "/resize", lookup.with_session(resize_terminal)});
    const auto add = [&](Access access, const char* method, const std::string& path, auto handler) {
        router.add(http::Route(access, method, path, std::move(handler)).without_body());
    };
    add(Access::kRead, "GET", all, lookup.with_session(list_processes));
    add(Access::kRead, "GET", one, with_process(lookup, get_process));
    add(Access::kRead, "GET", one + "/events", with_process(lookup, follow_process));
    // A client that may send nothing has the events.
    add(Access::kChange, "GET", one + "/ws", lookup.with_session(open_socket));
    add(Access::kChange, "DELETE", one, lookup.with_session(remove_process));
}

}  // namespace cellkeep::api
