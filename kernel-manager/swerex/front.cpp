// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/swerex/front.hpp"

#include "kernel-manager/http/access/principal.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/http/message/text_reading.hpp"
#include "kernel-manager/process/run_to_end.hpp"
#include "kernel-manager/swerex/file_actions.hpp"
#include "kernel-manager/swerex/limits.hpp"
#include "kernel-manager/swerex/raised.hpp"
#include "kernel-manager/swerex/shell_actions.hpp"
#include "protocol/json.hpp"
#include "protocol/limits.hpp"

#include <functional>
#include <utility>

namespace cellkeep::swerex {

namespace {

constexpr const char* kPlace = "/swe-rex/{id}/";

template <typename Order>
boost::asio::awaitable<Result<Order>> read_order(
    http::Request& request, Result<Order> (*parse)(const nlohmann::json&)) {
    http::TextReader<Result<Order>> read = [parse](const std::string& text) -> Result<Order> {
        BOOST_OUTCOME_TRY(const nlohmann::json body, protocol::parse_json(text, "the body"));
        return parse(body);
    };
    Result<Order> order = co_await http::read_body<Result<Order>>(request, std::move(read));
    if (order.has_error() && order.error().code() == ErrorCode::kProtocol) {
        co_return Error(ErrorCode::kInvalidArgument, order.error().message());
    }
    co_return order;
}

std::string in_quotes(const std::string& name) {
    return "'" + name + "'";
}

}  // namespace

http::Handler Front::with_session(Answer (Front::*member)(http::Request&, Session)) {
    return [this, member](http::Request& request) -> Answer {
        const std::string id = request.capture("id");
        Session session = service_.find(id);
        const bool visible = session != nullptr && session->id() == id &&
                             http::may_see(request.principal, session->info().owner);
        if (!visible) {
            co_return http::to_response(
                http::make_problem(404, "There is no session " + id + ", or it has ended."));
        }
        session->touch();
        http::Response answer = co_await (this->*member)(request, std::move(session));
        co_return answer;
    };
}

void Front::add_to(http::Router& router) {
    using http::Access;
    const std::string place = kPlace;
    const auto add = [&](const char* name, Answer (Front::*member)(http::Request&, Session)) {
        router.add({Access::kChange, "POST", place + name, with_session(member)});
    };
    router.add(
        {Access::kRead, "GET", place + "is_alive", [this](http::Request& request) -> Answer {
             const Session session = service_.find(request.capture("id"));
             const bool alive =
                 session != nullptr && http::may_see(request.principal, session->info().owner);
             co_return http::make_json(
                 200, {{"is_alive", alive}, {"message", alive ? "" : "There is no such session."}});
         }});
    add("create_session", &Front::start_shell);
    add("run_in_session", &Front::run_in_shell);
    add("close_session", &Front::close_shell);
    add("execute", &Front::execute);
    add("read_file", &Front::read_file);
    add("write_file", &Front::write_file);
    add("close", &Front::close);
    http::Route form(Access::kChange, "POST", place + "upload", with_session(&Front::upload));
    form.body_mode = http::BodyMode::kStreamed;
    form.body_bytes_max = limits::kUploadBytesMax;
    router.add(std::move(form));
}

Front::Answer Front::start_shell(http::Request& request, Session session) {
    auto order = co_await read_order<StartOrder>(request, parse_start_order);
    if (order.has_error()) {
        co_return refuse(order.error());
    }
    const std::string name = order.value().shell;
    const std::string id = session->id();
    if (shells_.find(id, name) != nullptr) {
        co_return raise(kShellExists, "session " + in_quotes(name) + " already exists");
    }
    if (!shells_.claim(id, name)) {
        co_return raise(
            kAnyException,
            "session " + in_quotes(name) + " is being created, or there are " +
                std::to_string(kShellsMax) + " already");
    }
    auto started = co_await Shell::start(std::move(session));
    if (started.has_error()) {
        shells_.forget(id, name);
        co_return refuse(started.error());
    }
    shells_.keep(id, name, started.value());
    auto shell = std::move(started).value();
    http::Response answer = co_await read_sources(std::move(shell), std::move(order).value());
    co_return answer;
}

Front::Answer Front::run_in_shell(http::Request& request, Session session) {
    auto read = co_await read_order<ShellOrder>(request, parse_shell_order);
    if (read.has_error()) {
        co_return refuse(read.error());
    }
    ShellOrder order = std::move(read).value();
    auto shell = shells_.find(session->id(), order.shell);
    if (shell == nullptr) {
        co_return raise(kNoShell, "session " + in_quotes(order.shell) + " does not exist");
    }
    if (order.interrupt) {
        http::Response answer = co_await interrupt(std::move(shell), std::move(order));
        co_return answer;
    }
    if (shell->busy()) {
        co_return raise(
            kAnyException, "session " + in_quotes(order.shell) + " runs a command already");
    }
    if (order.interactive || order.quits) {
        http::Response answer = co_await run_interactive(std::move(shell), std::move(order));
        co_return answer;
    }
    http::Response answer =
        co_await run_command(std::move(session), std::move(shell), std::move(order));
    co_return answer;
}

Front::Answer Front::close_shell(http::Request& request, Session session) {
    const auto name = co_await read_order<std::string>(request, parse_closing_order);
    if (name.has_error()) {
        co_return refuse(name.error());
    }
    const auto shell = shells_.find(session->id(), name.value());
    if (shell == nullptr) {
        co_return raise(kNoShell, "session " + in_quotes(name.value()) + " does not exist");
    }
    shell->close();
    shells_.forget(session->id(), name.value());
    co_return http::make_json(200, {{"session_type", "bash"}});
}

Front::Answer Front::execute(http::Request& request, Session session) {
    auto read = co_await read_order<ExecuteOrder>(request, parse_execute_order);
    if (read.has_error()) {
        co_return refuse(read.error());
    }
    ExecuteOrder order = std::move(read).value();
    process::CommandTable* const table = session->commands();
    if (table == nullptr) {
        co_return refuse({ErrorCode::kUnavailable, "Processes are not offered here."});
    }
    const std::string shown =
        nlohmann::json(order.argv).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    process::CommandOrder command;
    command.argv = std::move(order.argv);
    command.env = std::move(order.env);
    command.directory = std::move(order.directory);
    std::string no_input;
    const process::RunBounds bounds{order.time.value_or(kTimeMax), kOutputBytesMax};
    const auto run =
        co_await process::run_to_end(*table, std::move(command), std::move(no_input), bounds);
    if (run.has_error() && run.error().code() == ErrorCode::kTimeout) {
        co_return raise(kTimedOut, "Timeout while running " + shown);
    }
    if (run.has_error() && run.error().field() == process::kRunOutput) {
        co_return raise(
            kAnyException,
            shown + " wrote more than " + std::to_string(kOutputBytesMax) +
                " bytes; let it write to a file");
    }
    if (run.has_error()) {
        co_return refuse(run.error());
    }
    const process::FinishedRun& done = run.value();
    if (done.end.kind == process::CommandEnd::Kind::kFailed) {
        co_return raise(kFileNotFound, shown + ": " + done.end.failure);
    }
    if (order.check && done.status() != 0) {
        const std::string before = order.error_text.empty() ? "" : order.error_text + ": ";
        co_return raise(
            kNonZero,
            before + "Command " + shown + " failed with exit code " +
                std::to_string(done.status()) + ". Stdout:\n" + done.out + "\nStderr:\n" +
                done.err);
    }
    co_return http::make_json(
        200, {{"stdout", done.out}, {"stderr", done.err}, {"exit_code", done.status()}});
}

Front::Answer Front::read_file(http::Request& request, Session session) {
    auto order = co_await read_order<ReadOrder>(request, parse_read_order);
    if (order.has_error()) {
        co_return refuse(order.error());
    }
    http::Response answer =
        co_await swerex::read_file(std::move(session), std::move(order).value());
    co_return answer;
}

Front::Answer Front::write_file(http::Request& request, Session session) {
    auto order = co_await read_order<WriteOrder>(request, parse_write_order);
    if (order.has_error()) {
        co_return refuse(order.error());
    }
    http::Response answer =
        co_await swerex::write_file(std::move(session), std::move(order).value());
    co_return answer;
}

Front::Answer Front::upload(http::Request& request, Session session) {
    http::Response answer = co_await take_upload(request, std::move(session));
    co_return answer;
}

Status Front::go_on(const nlohmann::json& passed) {
    BOOST_OUTCOME_TRY(PassedShells all, read_shells(passed));
    for (auto& [id, named] : all) {
        const auto session = service_.find(id);
        for (auto& [name, one] : named) {
            auto shell = session == nullptr ? nullptr : Shell::go_on(session, std::move(one));
            if (shell != nullptr && shells_.claim(id, name)) {
                shells_.keep(id, name, std::move(shell));
            }
        }
    }
    return ok();
}

Front::Answer Front::close(http::Request& /*request*/, Session session) {
    const std::string id = session->id();
    session.reset();
    (void)service_.remove(id);  // Ignored: it has ended meanwhile.
    std::string gone = id;
    co_await service_.wait_until_gone(std::move(gone));
    co_return http::make_json(200, nlohmann::json::object());
}

}  // namespace cellkeep::swerex
