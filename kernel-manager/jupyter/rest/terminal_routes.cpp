// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/terminal_routes.hpp"

#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/jupyter/rest/rest_body.hpp"
#include "kernel-manager/jupyter/rest/rest_failures.hpp"
#include "kernel-manager/jupyter/rest/terminal_socket.hpp"
#include "kernel-manager/process/command_table.hpp"
#include "kernel-manager/session/session_info.hpp"
#include "protocol/support/time.hpp"

#include <utility>

namespace cellkeep::jupyter {

namespace {

http::Response no_such_terminal(const std::string& name) {
    return http::to_response(http::make_problem(404, "Terminal not found: " + name));
}

nlohmann::json terminal_model(const std::string& name, const session::Session& session) {
    return {{"name", name}, {"last_activity", to_iso8601(session.info().last_activity)}};
}

process::CommandOrder shell_order(std::string directory) {
    process::CommandOrder order;
    order.argv = {"bash", "-i"};
    order.env = {{"JUPYTER_SERVER_TERMINAL", "1"}};
    order.directory = std::move(directory);
    order.label = "terminal";
    order.terminal = process::CommandOrder::Terminal{};
    return order;
}

}  // namespace

void TerminalRoutes::add_to(http::Router& router, ClientActivity& activity) {
    using http::Access;
    const auto add = [&](Access access, const char* method, const char* pattern, auto member) {
        http::Route route(access, method, pattern, [this, member](http::Request& request) {
            return (this->*member)(request);
        });
        router.add(activity.counted(std::move(route)));
    };
    add(Access::kRead, "GET", "/api/terminals", &TerminalRoutes::list);
    add(Access::kChange, "POST", "/api/terminals", &TerminalRoutes::create);
    add(Access::kRead, "GET", "/api/terminals/{name}", &TerminalRoutes::get);
    add(Access::kChange, "DELETE", "/api/terminals/{name}", &TerminalRoutes::remove);
    // A client that may type nothing has no terminal.
    add(Access::kChange, "GET", "/terminals/websocket/{name}", &TerminalRoutes::open);
}

nlohmann::json TerminalRoutes::pass_on() {
    forget_ended();
    nlohmann::json all = nlohmann::json::array();
    for (const auto& [name, terminal] : terminals_) {
        if (const auto session = terminal.session.lock()) {
            all.push_back(
                {{"name", name}, {"session", session->id()}, {"command", terminal.command->id()}});
        }
    }
    return all;
}

void TerminalRoutes::go_on(const nlohmann::json& passed) {
    for (const nlohmann::json& each : passed) {
        const auto name = each.at("name").get<std::string>();
        const auto id = each.at("command").get<std::string>();
        const auto session = backend_.find(each.at("session").get<std::string>());
        const process::CommandTable* table = session == nullptr ? nullptr : session->commands();
        auto command = table == nullptr ? nullptr : table->find(id);
        if (command != nullptr && command->has_terminal()) {
            terminals_[name] = Terminal{session, std::move(command)};
        }
    }
}

void TerminalRoutes::forget_ended() {
    std::erase_if(terminals_, [](const auto& one) {
        return one.second.session.expired() || one.second.command->end().has_value();
    });
}

std::optional<TerminalRoutes::Found> TerminalRoutes::find(
    const std::string& name, const http::Principal& principal) const {
    const auto found = terminals_.find(name);
    auto session = found == terminals_.end() ? nullptr : found->second.session.lock();
    if (session == nullptr || found->second.command->end() ||
        !http::may_see(principal, session->info().owner)) {
        return std::nullopt;
    }
    return Found{std::move(session), found->second.command};
}

std::shared_ptr<session::Session> TerminalRoutes::last_used(
    const http::Principal& principal) const {
    std::shared_ptr<session::Session> last;
    for (const auto& session : backend_.list()) {
        const session::SessionInfo info = session->info();
        if (info.owner == principal.name &&
            (last == nullptr || info.last_activity > last->info().last_activity)) {
            last = session;
        }
    }
    return last;
}

std::string TerminalRoutes::free_name() const {
    std::size_t number = 1;
    while (terminals_.contains(std::to_string(number))) {
        ++number;
    }
    return std::to_string(number);
}

TerminalRoutes::Answer TerminalRoutes::list(http::Request& request) {
    forget_ended();
    nlohmann::json terminals = nlohmann::json::array();
    for (const auto& [name, terminal] : terminals_) {
        if (const auto found = find(name, request.principal)) {
            terminals.push_back(terminal_model(name, *found->session));
        }
    }
    co_return http::make_json(200, terminals);
}

TerminalRoutes::Answer TerminalRoutes::create(http::Request& request) {
    const auto body = co_await read_object(request);
    if (body.has_error()) {
        co_return failure_response(body.error());
    }
    const auto cwd = text_field(body.value().value_or(nlohmann::json::object()), "cwd");
    if (cwd.has_error()) {
        co_return failure_response(cwd.error());
    }
    std::string directory;
    std::shared_ptr<session::Session> session;
    if (auto place = places_.find(cwd.value(), request.principal); place.has_value()) {
        session = place.value().session;
        directory = place.value().path;
    }
    if (session == nullptr) {
        session = last_used(request.principal);
    }
    if (session == nullptr) {
        KernelOrder order;
        auto started = co_await kernels_.start(std::move(order), request.principal.name);
        if (started.has_error()) {
            co_return start_failure_response(started.error());
        }
        session = std::move(started).value();
    }
    process::CommandTable* table = session->commands();
    if (table == nullptr) {
        co_return http::to_response(http::make_problem(501, "Terminals are not offered here."));
    }
    process::CommandOrder order = shell_order(std::move(directory));
    const auto shell = co_await table->start(std::move(order));
    if (shell.has_error()) {
        co_return failure_response(shell.error());
    }
    forget_ended();
    const std::string name = free_name();
    terminals_[name] = Terminal{session, shell.value()};
    http::Response response = http::make_json(200, terminal_model(name, *session));
    response.headers.add("Location", "/api/terminals/" + name);
    co_return response;
}

TerminalRoutes::Answer TerminalRoutes::get(http::Request& request) {
    const std::string name = request.capture("name");
    const auto found = find(name, request.principal);
    co_return found ? http::make_json(200, terminal_model(name, *found->session))
                    : no_such_terminal(name);
}

TerminalRoutes::Answer TerminalRoutes::remove(http::Request& request) {
    const std::string name = request.capture("name");
    const auto found = find(name, request.principal);
    if (!found) {
        co_return no_such_terminal(name);
    }
    terminals_.erase(name);
    const Status removed = found->session->commands()->remove(found->command->id());
    co_return removed.has_error() ? failure_response(removed.error()) : http::make_empty(204);
}

TerminalRoutes::Answer TerminalRoutes::open(http::Request& request) {
    const std::string name = request.capture("name");
    auto found = find(name, request.principal);
    if (!found) {
        co_return no_such_terminal(name);
    }
    if (!request.websocket) {
        co_return http::to_response(
            http::make_problem(400, "This address is for WebSockets: send an Upgrade request."));
    }
    http::WebSocketUpgrade upgrade;
    upgrade.run = [session = found->session,
                   command = found->command,
                   thread = request.work_thread](std::shared_ptr<http::WebSocket> socket) {
        return serve_terminal(std::move(socket), session, command, thread);
    };
    http::Response response;
    response.status = 101;
    response.body = std::move(upgrade);
    co_return response;
}

}  // namespace cellkeep::jupyter
