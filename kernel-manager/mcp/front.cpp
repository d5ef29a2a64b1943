// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/front.hpp"

#include "kernel-manager/mcp/prompts.hpp"
#include "kernel-manager/mcp/resources.hpp"
#include "kernel-manager/mcp/tools/arguments.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace cellkeep::mcp {

namespace asio = boost::asio;

namespace {

/// The tools stay as they are while the server runs.
constexpr std::chrono::milliseconds kListFresh{300'000};

constexpr const char* kInstructions =
    "Cellkeep runs code in sandboxed sessions that keep variables, files and plots between calls. "
    "Use one session name for one piece of work. Every answer has `state`: kept, restored (after a "
    "rollback) or lost (earlier variables are gone; build them again).";

enum class Eras { kBoth, kSessions, kStateless };

struct MethodRow {
    std::string_view name;
    Eras eras = Eras::kBoth;
    bool cached = false;  // its result says how long it may be kept
};

constexpr std::array kMethods = {
    MethodRow{"initialize", Eras::kSessions},
    MethodRow{"ping", Eras::kSessions},
    MethodRow{"server/discover", Eras::kStateless, true},
    MethodRow{"tools/list", Eras::kBoth, true},
    MethodRow{"tools/call", Eras::kBoth},
    MethodRow{"prompts/list", Eras::kBoth, true},
    MethodRow{"prompts/get", Eras::kBoth},
    MethodRow{"resources/list", Eras::kBoth, true},
    MethodRow{"resources/templates/list", Eras::kBoth, true},
    MethodRow{"resources/read", Eras::kBoth, true},
};

const MethodRow* find_method(std::string_view name, Era era) {
    const auto row = std::find_if(kMethods.begin(), kMethods.end(), [&](const MethodRow& each) {
        return each.name == name && (each.eras == Eras::kBoth ||
                                     (each.eras == Eras::kStateless) == (era == Era::kStateless));
    });
    return row == kMethods.end() ? nullptr : &*row;
}

RpcError invalid_params(const Message& message, std::string why) {
    return {RpcCode::kInvalidParams, std::move(why), {}, message.id};
}

nlohmann::json capabilities() {
    const nlohmann::json plain = nlohmann::json::object();
    return {{"tools", plain}, {"resources", plain}, {"prompts", plain}};
}

/// Clients of the oldest revision know no links, and some refuse the whole answer for one.
void drop_links(nlohmann::json& content) {
    nlohmann::json kept = nlohmann::json::array();
    for (nlohmann::json& part : content) {
        if (part.at("type") != "resource_link") {
            kept.push_back(std::move(part));
        }
    }
    content = std::move(kept);
}

/// There is always one page.
std::optional<RpcError> refuse_cursor(const Message& message) {
    if (message.params.contains("cursor")) {
        return invalid_params(message, "This server gave no such cursor.");
    }
    return std::nullopt;
}

/// How long the result may be kept, by what it is.
std::chrono::milliseconds fresh_for(std::string_view method) {
    return method == "resources/list" || method == "resources/read" ? std::chrono::milliseconds(0)
                                                                    : kListFresh;
}

}  // namespace

Front::Front(asio::io_context& io, session::SessionService& service, std::string version)
    : names_(io, service),
      bench_{io, service, names_},
      tools_(make_tools(bench_)),
      version_(std::move(version)) {}

bool Front::knows(const Message& message, Era era) {
    return find_method(message.method, era) != nullptr;
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
    const Tool* tool = message.method == "tools/call" ? find_tool(message.params) : nullptr;
    // What is refused at once has a status of its own.
    const auto arguments = message.params.find("arguments");
    return tool != nullptr && tool->waits &&
           (arguments == message.params.end() || arguments->is_object());
}

nlohmann::json Front::server_info() const {
    return {{"name", "cellkeep"}, {"title", "Cellkeep"}, {"version", version_}};
}

Front::Answer Front::initialize(const Message& message) const {
    const auto version = message.params.find("protocolVersion");
    if (version == message.params.end() || !version->is_string()) {
        return invalid_params(message, "\"protocolVersion\" must be a string.");
    }
    return nlohmann::json{
        {"protocolVersion", negotiate(version->get_ref<const std::string&>())},
        {"capabilities", capabilities()},
        {"serverInfo", server_info()},
        {"instructions", kInstructions}};
}

Front::Answer Front::discover() const {
    return nlohmann::json{
        {"supportedVersions", revisions()},
        {"capabilities", capabilities()},
        {"instructions", kInstructions}};
}

Front::Answer Front::list_tools(const Message& message) const {
    if (auto refused = refuse_cursor(message)) {
        return std::move(*refused);
    }
    nlohmann::json tools = nlohmann::json::array();
    for (const Tool& tool : tools_) {
        tools.push_back(tool.listing);
    }
    return nlohmann::json{{"tools", std::move(tools)}};
}

asio::awaitable<Front::Answer> Front::call_tool(std::shared_ptr<Call> call, Message message) {
    const Tool* tool = find_tool(message.params);
    if (tool == nullptr) {
        co_return invalid_params(message, "There is no such tool.");
    }
    nlohmann::json arguments = nlohmann::json::object();
    if (const auto given = message.params.find("arguments"); given != message.params.end()) {
        arguments = std::move(*given);
    }
    if (!arguments.is_object()) {
        co_return invalid_params(message, "\"arguments\" must be an object.");
    }
    const std::string wrong = find_wrong_arguments(tool->listing.at("inputSchema"), arguments);
    if (!wrong.empty()) {
        co_return to_json(refuse(Refusal{
            "invalid_argument", wrong, "Call the tool again with other arguments.", State::kKept}));
    }
    const bool takes_links = call->peer().revision != kUnnamedRevision;
    ToolAnswer answer = co_await tool->handler(std::move(call), std::move(arguments));
    if (!takes_links) {
        drop_links(answer.content);
    }
    co_return to_json(answer);
}

Front::Answer Front::read_one_resource(const Call& call, const Message& message) const {
    const auto uri = message.params.find("uri");
    if (uri == message.params.end() || !uri->is_string()) {
        return invalid_params(message, "\"uri\" must be a string.");
    }
    auto read = read_resource(names_, call.principal(), uri->get_ref<const std::string&>());
    if (read.has_value()) {
        return std::move(read).value();
    }
    const ErrorCode code = read.error().code();
    if (code == ErrorCode::kNotFound) {
        const bool stateless = call.peer().era == Era::kStateless;
        return RpcError{
            stateless ? RpcCode::kInvalidParams : RpcCode::kResourceNotFound,
            "There is no such resource.",
            {{"uri", *uri}},
            message.id};
    }
    return RpcError{
        code == ErrorCode::kLimitExceeded ? RpcCode::kInvalidParams : RpcCode::kInternalError,
        read.error().message(),
        {{"uri", *uri}},
        message.id};
}

Front::Answer Front::get_one_prompt(const Message& message) {
    const auto name = message.params.find("name");
    if (name == message.params.end() || !name->is_string()) {
        return invalid_params(message, "\"name\" must be a string.");
    }
    auto prompt = get_prompt(
        name->get_ref<const std::string&>(),
        message.params.value("arguments", nlohmann::json::object()));
    if (prompt.has_error()) {
        return invalid_params(message, prompt.error().message());
    }
    return std::move(prompt).value();
}

asio::awaitable<Front::Answer> Front::answer(std::shared_ptr<Call> call, Message message) {
    const MethodRow* method = find_method(message.method, call->peer().era);
    if (method == nullptr) {
        co_return RpcError{
            RpcCode::kMethodNotFound, "This server does not know the method.", {}, message.id};
    }
    Answer answer = nlohmann::json::object();  // ping
    if (message.method == "tools/call") {
        answer = co_await call_tool(call, message);
    } else if (message.method == "initialize") {
        answer = initialize(message);
    } else if (message.method == "server/discover") {
        answer = discover();
    } else if (message.method == "tools/list") {
        answer = list_tools(message);
    } else if (message.method == "resources/read") {
        answer = read_one_resource(*call, message);
    } else if (message.method == "prompts/get") {
        answer = get_one_prompt(message);
    } else if (auto refused = refuse_cursor(message)) {
        answer = std::move(*refused);
    } else if (message.method == "prompts/list") {
        answer = list_prompts();
    } else if (message.method == "resources/list") {
        answer = list_resources(names_, call->principal());
    } else if (message.method == "resources/templates/list") {
        answer = list_resource_templates();
    }
    if (auto* result = std::get_if<nlohmann::json>(&answer);
        result != nullptr && call->peer().era == Era::kStateless) {
        (*result)["resultType"] = "complete";
        (*result)["_meta"]["io.modelcontextprotocol/serverInfo"] = server_info();
        if (method->cached) {
            (*result)["ttlMs"] = fresh_for(method->name).count();
            (*result)["cacheScope"] = "private";
        }
    }
    co_return answer;
}

}  // namespace cellkeep::mcp
