// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/interpreter/interpreter_routes.hpp"

#include "kernel-manager/e2b/envd/guest_path.hpp"
#include "kernel-manager/e2b/interpreter/execution_stream.hpp"
#include "kernel-manager/e2b/interpreter/run_variables.hpp"
#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/e2b/wire/body_reading.hpp"
#include "kernel-manager/e2b/wire/fields.hpp"
#include "kernel-manager/e2b/wire/sandbox_place.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/service/options_check.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace cellkeep::e2b {

namespace {

constexpr std::size_t kContextIdBytesMax = 128;
constexpr std::size_t kLanguageBytesMax = 64;

http::Response refuse_run(const Error& error) {
    return http::to_response(http::problem_from(error));
}

nlohmann::json to_json(const Context& context) {
    return {{"id", context.id}, {"language", context.language}, {"cwd", context.directory}};
}

/// Code around what the client asks for: it counts for nothing and shows nothing.
session::ExecutionRequest quiet(std::string code, const Context& context) {
    session::ExecutionRequest request;
    request.code = std::move(code);
    request.language = context.interpreter;
    request.store_history = false;
    return request;
}

Error no_language(const std::string& asked, const session::SessionInfo& info) {
    std::string names;
    for (const session::LanguageInfo& one : info.languages) {
        names += (names.empty() ? "" : ", ") + one.name;
    }
    return {
        ErrorCode::kInvalidArgument,
        "This server does not run " + asked + ". It runs: " + names + "."};
}

/// What a client asks for with POST /execute.
struct RunOrder {
    std::string code;
    ContextChoice context;
    std::map<std::string, std::string> variables;
};

Result<RunOrder> parse_run(const nlohmann::json& body) {
    RunOrder order;
    Fields fields(body);
    auto code = fields.text("code", kCodeBytesMax);
    order.context.id = fields.text("context_id", kContextIdBytesMax);
    order.context.language = fields.text("language", kLanguageBytesMax);
    order.variables = fields.texts("env_vars", kMetadataEntriesMax, kVariableBytesMax);
    if (!code) {
        fields.fail("code", "is required");
    }
    if (order.context.id && order.context.language) {
        fields.fail("", "must have at most one of \"context_id\" and \"language\"");
    }
    if (!fields.good()) {
        return fields.error();
    }
    BOOST_OUTCOME_TRY(session::check_environment_variables(order.variables));
    order.code = std::move(*code);
    return order;
}

/// What a client asks for with POST /contexts.
struct ContextOrder {
    std::string language;
    std::string directory;
};

Result<ContextOrder> parse_context(const nlohmann::json& body) {
    Fields fields(body);
    ContextOrder order;
    order.language = fields.text("language", kLanguageBytesMax).value_or("python");
    order.directory = absolute_path(fields.text("cwd", kContextDirectoryBytesMax).value_or(""));
    if (!fields.good()) {
        return fields.error();
    }
    return order;
}

/// The client's code, with what sets its variables before it and behind it in the queue.
Result<std::shared_ptr<session::Execution>> begin_run(
    session::Session& session,
    const Context& context,
    std::string code,
    const std::map<std::string, std::string>& variables) {
    session::ExecutionRequest request;
    request.code = std::move(code);
    request.language = context.interpreter;
    if (variables.empty()) {
        return session.begin(std::move(request));
    }
    auto around = set_variables(context.language, variables);
    if (!around) {
        return Error(
            ErrorCode::kInvalidArgument,
            "\"env_vars\" cannot be set for code in " + context.language + ".");
    }
    // All three or none: what sets the variables never stays without what takes them back.
    std::vector<session::ExecutionRequest> all;
    all.push_back(quiet(std::move(around->before), context));
    all.push_back(std::move(request));
    all.push_back(quiet(std::move(around->after), context));
    BOOST_OUTCOME_TRY(const auto begun, session.begin_all(std::move(all)));
    return begun[1];
}

}  // namespace

void InterpreterRoutes::add_to(http::Router& router) {
    using http::Access;
    const std::string base =
        "/" + std::string(kSandboxSegment) + "/{id}/" + std::to_string(kInterpreterPort);
    const auto add = [&](Access access, const char* method, const std::string& path, auto member) {
        router.add(
            {access,
             method,
             base + path,
             door_.with_session([this, member](http::Request& request, Session session) {
                 return (this->*member)(request, std::move(session));
             })});
    };
    add(Access::kChange, "POST", "/execute", &InterpreterRoutes::execute);
    add(Access::kRead, "GET", "/contexts", &InterpreterRoutes::list);
    add(Access::kChange, "POST", "/contexts", &InterpreterRoutes::create);
    add(Access::kChange, "DELETE", "/contexts/{context}", &InterpreterRoutes::remove);
    add(Access::kChange, "POST", "/contexts/{context}/restart", &InterpreterRoutes::restart);
    router.add(
        {Access::kRead,
         "GET",
         base + "/health",
         door_.with_session([](http::Request& /*request*/, Session /*session*/) -> Answer {
             co_return http::make_json(200, "OK");
         })});
}

Result<Context> InterpreterRoutes::choose(
    const session::Session& session, const ContextChoice& choice) const {
    const session::SessionInfo info = session.info();
    if (choice.id) {
        auto context = contexts_.find(info, *choice.id);
        return context ? Result<Context>(std::move(*context))
                       : Error(ErrorCode::kNotFound, "Context " + *choice.id + " not found");
    }
    const std::string asked = choice.language.value_or(info.language);
    const auto name = Contexts::language_of(asked, info);
    if (!name) {
        return no_language(asked, info);
    }
    return *contexts_.find(info, *name);
}

InterpreterRoutes::Answer InterpreterRoutes::execute(http::Request& request, Session session) {
    BodyReader<RunOrder> read = parse_run;
    auto read_order = co_await read_body<RunOrder>(request, std::move(read));
    if (read_order.has_error()) {
        co_return refuse_run(read_order.error());
    }
    RunOrder& order = read_order.value();
    const auto context = choose(*session, order.context);
    if (context.has_error()) {
        co_return refuse_run(context.error());
    }
    auto run = begin_run(*session, context.value(), std::move(order.code), order.variables);
    if (run.has_error()) {
        co_return refuse_run(run.error());
    }
    co_return execution_answer(std::move(session), std::move(run).value(), request.work_thread);
}

InterpreterRoutes::Answer InterpreterRoutes::list(http::Request& /*request*/, Session session) {
    nlohmann::json all = nlohmann::json::array();
    for (const Context& context : contexts_.list(session->info())) {
        all.push_back(to_json(context));
    }
    co_return http::make_json(200, all);
}

InterpreterRoutes::Answer InterpreterRoutes::create(http::Request& request, Session session) {
    BodyReader<ContextOrder> read = parse_context;
    const auto order = co_await read_body<ContextOrder>(request, std::move(read));
    if (order.has_error()) {
        co_return refuse_run(order.error());
    }
    const session::SessionInfo info = session->info();
    const auto language = Contexts::language_of(order.value().language, info);
    if (!language) {
        co_return refuse_run(no_language(order.value().language, info));
    }
    const std::string& directory = order.value().directory;
    auto made = contexts_.make(info.id, *language, directory);
    if (made.has_error()) {
        co_return refuse_run(made.error());
    }
    const Context context = made.value().context;
    if (made.value().reused) {
        const Status fresh = co_await session->restart_language(context.interpreter);
        if (fresh.has_error()) {
            contexts_.take_back(info.id, made.value());
            co_return refuse_run(fresh.error());
        }
    }
    // It starts its interpreter, too.
    auto code = change_directory(context.language, directory);
    auto begun = session->begin(quiet(std::move(code).value_or(""), context));
    if (begun.has_error()) {
        contexts_.take_back(info.id, made.value());
        co_return refuse_run(begun.error());
    }
    co_return http::make_json(200, to_json(context));
}

InterpreterRoutes::Answer InterpreterRoutes::remove(http::Request& request, Session session) {
    const auto removed = contexts_.remove(session->info(), request.capture("context"));
    if (removed.has_error()) {
        co_return refuse_run(removed.error());
    }
    // Ignored: one that rests has nothing to be interrupted. What it holds goes when it is used
    // again, or with the sandbox.
    (void)session->interrupt_language(removed.value().interpreter);
    co_return http::make_empty(204);
}

InterpreterRoutes::Answer InterpreterRoutes::restart(http::Request& request, Session session) {
    const std::string id = request.capture("context");
    const auto context = contexts_.find(session->info(), id);
    if (!context) {
        co_return refuse_run({ErrorCode::kNotFound, "Context " + id + " not found"});
    }
    const Status restarted = co_await session->restart_language(context->interpreter);
    const bool unused = restarted.has_error() && restarted.error().code() == ErrorCode::kConflict;
    if (restarted.has_error() && !unused) {
        co_return refuse_run(restarted.error());
    }
    if (auto code = change_directory(context->language, context->directory); code && !unused) {
        // Ignored: the context works without it, in the directory of all others.
        (void)session->begin(quiet(std::move(*code), *context)).has_value();
    }
    co_return http::make_empty(204);
}

}  // namespace cellkeep::e2b
