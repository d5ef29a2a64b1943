// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/front.hpp"

#include "kernel-manager/mcp/asking/ask.hpp"
#include "kernel-manager/mcp/completions.hpp"
#include "kernel-manager/mcp/limits.hpp"
#include "kernel-manager/mcp/prompts.hpp"
#include "kernel-manager/mcp/resources.hpp"
#include "kernel-manager/mcp/tools/arguments.hpp"
#include "kernel-manager/mcp/tools/tool_stubs.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace cellkeep::mcp {

namespace asio = boost::asio;

enum class Eras { kBoth, kSessions, kStateless };
/// What its result says of being kept.
enum class Cached { kNo, kNever, kLong };

struct Front::Method {
    std::string_view name;
    Coroutine (Front::*answer)(std::shared_ptr<Call>, Message);
    Eras eras = Eras::kBoth;
    Cached cached = Cached::kNo;
};

namespace {

/// Which tools there are stays while the server runs. What run_code says of others may change.
constexpr std::chrono::milliseconds kListFresh{300'000};

constexpr const char* kInstructions =
    "Cellkeep runs code in sandboxed sessions that keep variables, files and plots between calls. "
    "Use one session name for one piece of work. Every answer has `state`: kept, restored (after a "
    "rollback) or lost (earlier variables are gone; build them again).";

RpcError invalid_params(std::string why) {
    return {RpcCode::kInvalidParams, std::move(why), {}, {}};
}

nlohmann::json capabilities() {
    const nlohmann::json plain = nlohmann::json::object();
    return {
        {"tools", plain},
        {"resources", {{"subscribe", true}}},
        {"prompts", plain},
        {"completions", plain},
        {"logging", plain}};
}

/// There is always one page.
std::optional<RpcError> refuse_cursor(const Message& message) {
    if (message.params.contains("cursor")) {
        return invalid_params("This server gave no such cursor.");
    }
    return std::nullopt;
}

}  // namespace

Front::Front(asio::io_context& io, session::SessionService& service, Config config)
    : io_(io),
      names_(io, service),
      bench_{io, service, names_, seal_, tasks_, std::move(config.approvals), config.others},
      tools_(make_tools(bench_)),
      version_(std::move(config.version)),
      operator_tools_(std::move(config.operator_tools)),
      subscriptions_(
          io,
          [this](const http::Principal& principal, const std::string& uri) {
              return find_any(principal, uri);
          },
          [this](const http::Principal& principal, const std::string& uri) {
              return describe_version(names_, principal, uri);
          }) {
    if (config.fixtures == WithFixtures::kYes) {
        fixtures_.emplace(seal_);
    }
}

void Front::stop() {
    subscriptions_.stop();
}

Front::Coroutine Front::subscribe(std::shared_ptr<Call> call, Message message) {
    return subscriptions_.subscribe(std::move(call), std::move(message));
}

Front::Coroutine Front::unsubscribe(std::shared_ptr<Call> call, Message message) {
    return subscriptions_.unsubscribe(std::move(call), std::move(message));
}

Front::Coroutine Front::answer_about_task(std::shared_ptr<Call> call, Message message) {
    co_return task_methods_.answer(*call, message);
}

Front::Coroutine Front::listen(std::shared_ptr<Call> call, Message message) {
    if (auto refused = TaskMethods::refuse_listening(*call, message)) {
        co_return std::move(*refused);
    }
    co_return co_await subscriptions_.listen(std::move(call), std::move(message));
}

std::shared_ptr<Client> Front::make_client(const nlohmann::json& params) const {
    return std::make_shared<Client>(
        io_, read_capabilities(params.value("capabilities", nlohmann::json())));
}

const Front::Method* Front::find_method(const std::string& name, Era era) {
    static constexpr std::array kMethods = {
        Method{"initialize", &Front::initialize, Eras::kSessions},
        Method{"ping", &Front::ping, Eras::kSessions},
        Method{"logging/setLevel", &Front::set_log_level, Eras::kSessions},
        Method{"server/discover", &Front::discover, Eras::kStateless, Cached::kLong},
        Method{"tools/list", &Front::list_all_tools, Eras::kBoth, Cached::kLong},
        Method{"tools/call", &Front::call_tool},
        Method{"prompts/list", &Front::list_all_prompts, Eras::kBoth, Cached::kLong},
        Method{"prompts/get", &Front::get_one_prompt},
        Method{"resources/list", &Front::list_all_resources, Eras::kBoth, Cached::kNever},
        Method{"resources/templates/list", &Front::list_templates, Eras::kBoth, Cached::kLong},
        Method{"resources/read", &Front::read_one_resource, Eras::kBoth, Cached::kNever},
        Method{"resources/subscribe", &Front::subscribe, Eras::kSessions},
        Method{"resources/unsubscribe", &Front::unsubscribe, Eras::kSessions},
        Method{"subscriptions/listen", &Front::listen, Eras::kStateless},
        Method{"completion/complete", &Front::complete_argument},
        Method{"tasks/get", &Front::answer_about_task, Eras::kStateless},
        Method{"tasks/update", &Front::answer_about_task, Eras::kStateless},
        Method{"tasks/cancel", &Front::answer_about_task, Eras::kStateless},
    };
    const auto* row = std::find_if(kMethods.begin(), kMethods.end(), [&](const Method& each) {
        return each.name == name && (each.eras == Eras::kBoth ||
                                     (each.eras == Eras::kStateless) == (era == Era::kStateless));
    });
    return row == kMethods.end() ? nullptr : row;
}

bool Front::knows(const Message& message, Era era) {
    return find_method(message.method, era) != nullptr;
}

bool Front::listens(const Message& message) {
    return message.method == "subscriptions/listen";
}

const Tool* Front::find_tool(const nlohmann::json& params) const {
    const auto name = params.find("name");
    if (name == params.end()) {
        return nullptr;
    }
    const auto tool = std::find_if(tools_.begin(), tools_.end(), [&](const Tool& each) {
        return each.listing.at("name") == *name;
    });
    return tool == tools_.end() ? nullptr : &*tool;
}

bool Front::waits(const Message& message) const {
    if (listens(message)) {
        // What is refused at once has a status of its own.
        return message.params.value("notifications", nlohmann::json()).is_object();
    }
    const auto arguments = message.params.find("arguments");
    if (message.method != "tools/call" ||
        (arguments != message.params.end() && !arguments->is_object())) {
        return false;
    }
    const std::string* name = text_parameter(message, "name");
    if (name != nullptr && fixtures_ && fixtures_->waits(*name)) {
        return true;
    }
    const Tool* tool = find_tool(message.params);
    return tool != nullptr && tool->waits;
}

nlohmann::json Front::server_info() const {
    return {{"name", "cellkeep"}, {"title", "Cellkeep"}, {"version", version_}};
}

Front::Coroutine Front::ping(std::shared_ptr<Call> /*call*/, Message /*message*/) {
    co_return nlohmann::json::object();
}

Front::Coroutine Front::initialize(std::shared_ptr<Call> /*call*/, Message message) {
    const std::string* version = text_parameter(message, "protocolVersion");
    if (version == nullptr) {
        co_return invalid_params("\"protocolVersion\" must be a string.");
    }
    co_return nlohmann::json{
        {"protocolVersion", negotiate(*version)},
        {"capabilities", capabilities()},
        {"serverInfo", server_info()},
        {"instructions", kInstructions}};
}

Front::Coroutine Front::discover(std::shared_ptr<Call> /*call*/, Message /*message*/) {
    nlohmann::json offered = capabilities();
    offered["extensions"] = {{kTasksExtension, nlohmann::json::object()}};
    co_return nlohmann::json{
        {"supportedVersions", revisions()},
        {"capabilities", std::move(offered)},
        {"instructions", kInstructions}};
}

Front::Coroutine Front::set_log_level(std::shared_ptr<Call> call, Message message) {
    const std::string* name = text_parameter(message, "level");
    const auto level = name == nullptr ? std::nullopt : parse_log_level(*name);
    if (!level) {
        co_return invalid_params("There is no such log level.");
    }
    if (call->client() != nullptr) {
        call->client()->log_level = level;
    }
    co_return nlohmann::json::object();
}

Front::Coroutine Front::list_all_tools(std::shared_ptr<Call> call, Message message) {
    if (auto refused = refuse_cursor(message)) {
        co_return std::move(*refused);
    }
    nlohmann::json tools = nlohmann::json::array();
    for (const Tool& tool : tools_) {
        tools.push_back(tool.listing);
        if (operator_tools_ && tool.listing["name"] == "run_code") {
            std::string text = tool.listing["description"];
            text += describe_tools(operator_tools_->list({"", "", call->principal().name}));
            tools.back()["description"] = std::move(text);
        }
    }
    if (fixtures_) {
        fixtures_->add_tools(tools);
    }
    co_return nlohmann::json{{"tools", std::move(tools)}};
}

Front::Coroutine Front::run_tool(
    const Tool& tool, std::shared_ptr<Call> call, nlohmann::json arguments) {
    const std::string wrong = find_wrong_arguments(tool.listing.at("inputSchema"), arguments);
    if (!wrong.empty()) {
        co_return to_json(refuse(Refusal{
            "invalid_argument", wrong, "Call the tool again with other arguments.", State::kKept}));
    }
    const bool takes_links = call->peer().revision != kUnnamedRevision;
    ToolAnswer answer = co_await tool.handler(std::move(call), std::move(arguments));
    if (answer.instead) {
        co_return std::move(*answer.instead);
    }
    if (!takes_links) {
        drop_links(answer.content);
    }
    co_return to_json(answer);
}

Front::Coroutine Front::call_tool(std::shared_ptr<Call> call, Message message) {
    if (auto refused = take_input(*call, message, seal_)) {
        co_return std::move(*refused);
    }
    const std::string* name = text_parameter(message, "name");
    if (name != nullptr && fixtures_ && fixtures_->has_tool(*name)) {
        co_return co_await fixtures_->call_tool(std::move(call), std::move(message));
    }
    const Tool* tool = find_tool(message.params);
    if (tool == nullptr) {
        co_return invalid_params("There is no such tool.");
    }
    nlohmann::json arguments = nlohmann::json::object();
    if (const auto given = message.params.find("arguments"); given != message.params.end()) {
        arguments = std::move(*given);
    }
    if (!arguments.is_object()) {
        co_return invalid_params("\"arguments\" must be an object.");
    }
    co_return co_await run_tool(*tool, std::move(call), std::move(arguments));
}

Front::Coroutine Front::list_all_prompts(std::shared_ptr<Call> /*call*/, Message message) {
    if (auto refused = refuse_cursor(message)) {
        co_return std::move(*refused);
    }
    nlohmann::json listed = list_prompts();
    if (fixtures_) {
        fixtures_->add_prompts(listed["prompts"]);
    }
    co_return listed;
}

Front::Coroutine Front::get_one_prompt(std::shared_ptr<Call> call, Message message) {
    const std::string* name = text_parameter(message, "name");
    if (name == nullptr) {
        co_return invalid_params("\"name\" must be a string.");
    }
    if (auto refused = take_input(*call, message, seal_)) {
        co_return std::move(*refused);
    }
    if (fixtures_ && fixtures_->has_prompt(*name)) {
        co_return co_await fixtures_->get_prompt(std::move(call), std::move(message));
    }
    auto prompt = get_prompt(*name, message.params.value("arguments", nlohmann::json::object()));
    if (prompt.has_error()) {
        co_return invalid_params(prompt.error().message());
    }
    co_return std::move(prompt).value();
}

Front::Coroutine Front::list_all_resources(std::shared_ptr<Call> call, Message message) {
    if (auto refused = refuse_cursor(message)) {
        co_return std::move(*refused);
    }
    nlohmann::json listed = list_resources(names_, call->principal());
    if (fixtures_) {
        fixtures_->add_resources(listed["resources"]);
    }
    co_return listed;
}

Front::Coroutine Front::list_templates(std::shared_ptr<Call> /*call*/, Message message) {
    if (auto refused = refuse_cursor(message)) {
        co_return std::move(*refused);
    }
    nlohmann::json listed = list_resource_templates();
    if (fixtures_) {
        fixtures_->add_templates(listed["resourceTemplates"]);
    }
    co_return listed;
}

Front::Coroutine Front::read_one_resource(std::shared_ptr<Call> call, Message message) {
    const std::string* uri = text_parameter(message, "uri");
    if (uri == nullptr) {
        co_return invalid_params("\"uri\" must be a string.");
    }
    if (fixtures_) {
        if (auto fixed = fixtures_->read_resource(*uri)) {
            co_return std::move(*fixed);
        }
    }
    auto read = read_resource(names_, call->principal(), *uri);
    if (read.has_value()) {
        co_return std::move(read).value();
    }
    const ErrorCode code = read.error().code();
    if (code == ErrorCode::kNotFound) {
        co_return no_such_resource(call->peer().era, *uri);
    }
    co_return RpcError{
        code == ErrorCode::kLimitExceeded ? RpcCode::kInvalidParams : RpcCode::kInternalError,
        read.error().message(),
        {{"uri", *uri}},
        {}};
}

Status Front::find_any(const http::Principal& principal, const std::string& uri) const {
    if (fixtures_ && fixtures_->has_resource(uri)) {
        return ok();
    }
    return find_resource(names_, principal, uri);
}

Front::Coroutine Front::complete_argument(std::shared_ptr<Call> call, Message message) {
    const auto order = read_completion(message.params);
    if (order.has_error()) {
        co_return invalid_params(order.error().message());
    }
    if (fixtures_ && order.value().of_prompt && fixtures_->has_prompt(order.value().ref)) {
        co_return nlohmann::json{{"completion", completion_of({})}};
    }
    auto values = complete(names_, call->principal(), order.value());
    if (values.has_error()) {
        co_return invalid_params(values.error().message());
    }
    co_return nlohmann::json{{"completion", std::move(values).value()}};
}

Front::Coroutine Front::answer(std::shared_ptr<Call> call, Message message) {
    const Era era = call->peer().era;
    const Method* method = find_method(message.method, era);
    if (method == nullptr) {
        co_return RpcError{
            RpcCode::kMethodNotFound, "This server does not know the method.", {}, {}};
    }
    Answer answer = co_await (this->*method->answer)(std::move(call), std::move(message));
    if (auto* result = std::get_if<nlohmann::json>(&answer);
        result != nullptr && era == Era::kStateless) {
        result->emplace("resultType", "complete");
        (*result)["_meta"]["io.modelcontextprotocol/serverInfo"] = server_info();
        if (method->cached != Cached::kNo) {
            (*result)["ttlMs"] = method->cached == Cached::kLong ? kListFresh.count() : 0;
            (*result)["cacheScope"] = "private";
        }
    }
    co_return answer;
}

}  // namespace cellkeep::mcp
