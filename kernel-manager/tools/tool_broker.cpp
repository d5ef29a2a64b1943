// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/tool_broker.hpp"

#include "kernel-manager/tools/call_result.hpp"
#include "kernel-manager/tools/limits.hpp"
#include "kernel-manager/tools/long_result.hpp"
#include "protocol/json.hpp"
#include "protocol/limits.hpp"
#include "protocol/sha256.hpp"
#include "protocol/support/await.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/next_turn.hpp"
#include "protocol/support/run_elsewhere.hpp"
#include "protocol/tool_request.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

namespace cellkeep::tools {

namespace asio = boost::asio;

namespace {

using governance::Decision;
using governance::Verdict;
using nlohmann::json;
using session::ToolCaller;
using session::ToolOutcome;
using std::chrono::steady_clock;

/// In place of a text that no person has reviewed: a model would read it.
constexpr std::string_view kNotReviewed =
    "This tool is new or has changed. Its description is shown when somebody has reviewed it.";

std::string listed_text(const std::string& server, const ServerTool& tool, bool reviewed) {
    return protocol::dump_json(
        {{"name", server + "." + tool.word},
         {"description", reviewed ? tool.description : std::string(kNotReviewed)},
         {"input_schema", reviewed ? tool.input_schema : json::object()}});
}

/// What a person is shown of a call.
governance::ApprovalRequest ask_about(
    const ToolCaller& caller,
    const std::string& name,
    std::string_view arguments,
    const ServerTool& tool) {
    governance::ApprovalRequest request;
    request.session_id = caller.session_id;
    request.execution_id = caller.execution_id;
    request.tool = name;
    request.description = tool.description;
    request.arguments = plain_text(arguments, kShownArgumentsBytesMax);
    request.arguments_cut = arguments.size() > kShownArgumentsBytesMax;
    request.arguments_bytes = arguments.size();
    request.arguments_sha256 = protocol::sha256_hex(arguments);
    return request;
}

bool is_reviewed(const Decision& decision) {
    return decision.reason != governance::DecisionReason::kNew &&
           decision.reason != governance::DecisionReason::kChanged;
}

/// What a person says.
struct ApprovalWord {
    governance::ApprovalAnswer answer = governance::ApprovalAnswer::kDenied;
    std::string by;
};

}  // namespace

/// One call on its way.
struct ToolBroker::Call {
    LoggedCall what;
    protocol::RawJson arguments;
    Hooks hooks;
    bool given_up = false;
    bool logged = false;
    steady_clock::time_point begun = steady_clock::now();
    // While a person is asked.
    std::shared_ptr<Completion<ApprovalWord>> word = nullptr;
    std::shared_ptr<void> approval = nullptr;
    // Once it is with its server.
    std::weak_ptr<ToolServer> server = {};
    std::int64_t id = 0;

    void give_up() {
        given_up = true;
        approval = nullptr;
        if (word) {
            word->set({});
        }
        if (const auto asked = server.lock(); asked && id != 0) {
            asked->cancel(id);
        }
    }
};

Result<std::shared_ptr<ToolBroker>> ToolBroker::create(asio::io_context& io, Config config) {
    BOOST_OUTCOME_TRY(auto reviews, governance::ToolReviews::load(config.reviews_path));
    std::map<std::string, governance::ToolRules> rules;
    for (const ServerEntry& entry : config.entries) {
        rules.emplace(entry.name, entry.rules);
    }
    return std::shared_ptr<ToolBroker>(new ToolBroker(
        io, std::move(config), governance::Gate(std::move(rules), std::move(reviews))));
}

ToolBroker::ToolBroker(asio::io_context& io, Config config, governance::Gate gate)
    : io_(io), config_(std::move(config)), gate_(std::move(gate)), log_(config_.log) {}

void ToolBroker::start() {
    const std::weak_ptr<ToolBroker> weak = weak_from_this();
    for (const ServerEntry& entry : config_.entries) {
        ToolServer::Hooks hooks{
            .connect = config_.connect,
            .on_tools =
                [weak](const ToolServer& server) {
                    if (const auto self = weak.lock()) {
                        self->on_tools(server);
                    }
                },
            .log =
                [log = config_.log](
                    const ToolServer& server, std::string_view what, const std::string& why) {
                    log("tool_server",
                        {{"server", server.entry().name}, {"what", what}, {"message", why}});
                }};
        servers_.push_back(ToolServer::create(io_, work_thread_, entry, std::move(hooks)));
        servers_.back()->start();
    }
}

void ToolBroker::stop() {
    for (const auto& server : servers_) {
        server->stop();
    }
}

void ToolBroker::on_tools(const ToolServer& server) {
    governance::ToolReviews::Digests digests;
    for (const ServerTool& tool : server.tools()) {
        digests.emplace(tool.name, tool.digest);
    }
    const std::string& name = server.entry().name;
    lists_.clear();
    if (gate_.see(name, server.entry().identity, digests)) {
        on_reviews();
    }
    json not_reviewed = json::array();
    for (const auto& [tool, digest] : digests) {
        if (gate_.reviews().state(name, tool, digest) !=
            governance::ToolReviews::State::kReviewed) {
            not_reviewed.push_back(
                {{"tool", plain_text(tool, limits::kToolNameBytesMax)}, {"sha256", digest}});
        }
    }
    config_.log(
        "tool_server",
        {{"server", name},
         {"what", "tools"},
         {"tools", digests.size()},
         {"not_reviewed", std::move(not_reviewed)}});
}

/// The file has some kilobytes, but its disk may stall.
void ToolBroker::on_reviews() {
    lists_.clear();
    work_thread_->run([reviews = gate_.reviews(), path = config_.reviews_path, log = config_.log] {
        // Ignored: the next start asks for a review again, which is safe.
        (void)reviews.save(path).has_value();
        return WorkThread::Slice::kDone;
    });
}

ToolBroker::Found ToolBroker::find(const ToolCaller& caller, std::string_view name) const {
    const std::size_t dot = name.find('.');
    if (dot == std::string_view::npos) {
        return {};
    }
    for (const auto& server : servers_) {
        const ServerEntry& entry = server->entry();
        if (entry.word == name.substr(0, dot) && gate_.may_use(entry.name, caller.principal)) {
            const ServerTool* tool = server->find(name.substr(dot + 1));
            return tool == nullptr ? Found() : Found{server, tool};
        }
    }
    return {};
}

Decision ToolBroker::decide(
    const ToolCaller& caller, const ToolServer& server, const ServerTool& tool) const {
    return gate_.decide({caller.principal, server.entry().name, tool.name, tool.digest});
}

std::string ToolBroker::list(const ToolCaller& caller) {
    const auto known = lists_.find(caller.principal);
    if (known != lists_.end()) {
        return known->second;
    }
    return lists_.emplace(caller.principal, make_list(caller)).first->second;
}

std::string ToolBroker::make_list(const ToolCaller& caller) const {
    std::string text;
    for (const auto& server : servers_) {
        for (const ServerTool& tool : server->tools()) {
            const Decision decision = decide(caller, *server, tool);
            if (decision.verdict == Verdict::kDeny) {
                continue;
            }
            const std::string one = listed_text(server->entry().word, tool, is_reviewed(decision));
            if (text.size() + one.size() < kListBytesMax) {
                text += text.empty() ? "" : ",";
                text += one;
            }
        }
    }
    return text;
}

bool ToolBroker::offers(const ToolCaller& caller, std::string_view name) const {
    return find(caller, name).tool != nullptr;
}

std::shared_ptr<void> ToolBroker::call(
    const ToolCaller& caller, const std::string& name, protocol::RawJson arguments, Hooks hooks) {
    auto call = std::make_shared<Call>(
        Call{.what = {caller, name}, .arguments = std::move(arguments), .hooks = std::move(hooks)});
    asio::co_spawn(io_, run(shared_from_this(), call), asio::detached);
    // The call itself lives as long as it takes; who waits for it has this.
    return {static_cast<void*>(call.get()), [call](void* /*the same*/) { call->give_up(); }};
}

/// Static: the coroutine owns what it uses.
asio::awaitable<void> ToolBroker::run(
    std::shared_ptr<ToolBroker> self, std::shared_ptr<Call> call) {
    co_await next_turn();  // no hook is called inside call()
    if (call->given_up) {
        co_return;
    }
    ToolOutcome outcome = co_await self->carry_out(call);
    if (call->logged) {
        const auto took = steady_clock::now() - call->begun;
        self->log_.end(
            call->what,
            outcome,
            call->given_up,
            std::chrono::duration_cast<std::chrono::milliseconds>(took));
    }
    call->id = 0;  // there is nothing to cancel
    if (!call->given_up) {
        const auto on_done = call->hooks.on_done;  // what it is told may let go of the call
        on_done(std::move(outcome));
    }
}

asio::awaitable<ToolOutcome> ToolBroker::carry_out(std::shared_ptr<Call> call) {
    const auto turn = rate_.admit(call->what.caller.session_id, steady_clock::now());
    if (!turn) {
        log_.suppress();
        co_return refused_call(
            protocol::kToolRefusedTooMany,
            "A session may call tools " + std::to_string(kSessionCallsPerSecond) +
                " times in a second. Wait a little.");
    }
    if (turn->count() > 0) {
        const auto timer = std::make_shared<asio::steady_timer>(io_, *turn);
        (void)co_await timer->async_wait(kAwait);  // Ignored: it ends as it ends.
        if (call->given_up) {
            co_return refused_call(protocol::kToolRefusedUnavailable, "Nobody waits for it.");
        }
    }
    const Found found = find(call->what.caller, call->what.name);
    if (found.tool == nullptr) {  // it was there when it was asked for
        co_return refused_call(protocol::kToolRefusedUnavailable, "The tool is gone.");
    }
    const Decision decision = decide(call->what.caller, *found.server, *found.tool);
    call->logged = true;
    log_.begin(call->what, call->arguments.text(), decision);
    if (decision.verdict == Verdict::kDeny) {
        co_return refused_call(
            protocol::kToolRefusedDenied, "A rule of this server denies this tool.");
    }
    const std::string digest = found.tool->digest;
    if (decision.verdict == Verdict::kAsk) {
        governance::ApprovalRequest request =
            ask_about(call->what.caller, call->what.name, call->arguments.text(), *found.tool);
        request.action = {
            call->what.caller.principal, found.server->entry().name, found.tool->name, digest};
        request.reason = decision.reason;
        auto refused = co_await await_approval(call, std::move(request));
        if (refused) {
            co_return std::move(*refused);
        }
    }
    co_return co_await send(call, digest);
}

/// nullopt: a person has said yes.
asio::awaitable<std::optional<ToolOutcome>> ToolBroker::await_approval(
    std::shared_ptr<Call> call, governance::ApprovalRequest request) {
    if (!config_.approvals) {
        co_return refused_call(
            protocol::kToolRefusedNotApproved,
            "This call needs an approval, and there is nobody who could give it.");
    }
    const governance::ToolAction action = request.action;
    const bool reviews = request.reason != governance::DecisionReason::kRule;
    call->word = std::make_shared<Completion<ApprovalWord>>(io_);
    auto asked = config_.approvals->ask(
        std::move(request),
        [word = call->word](governance::ApprovalAnswer answer, const std::string& by) {
            word->set({answer, by});
        });
    if (asked.has_error()) {
        co_return refused_call(
            protocol::kToolRefusedNotApproved,
            "This call needs an approval, and " + asked.error().message() + ".");
    }
    const std::string id = asked.value().id;
    call->approval = std::move(asked.value().held);
    log_.approval(call->what, id, "asked", "");
    if (call->hooks.on_held) {
        call->hooks.on_held(id);
    }
    const auto waiting = call->word;
    const ApprovalWord word = co_await Completion<ApprovalWord>::wait(waiting);
    call->approval = nullptr;
    const std::string_view said = call->given_up ? "withdrawn" : to_string(word.answer);
    log_.approval(call->what, id, said, word.by);
    if (call->given_up || word.answer == governance::ApprovalAnswer::kDenied) {
        co_return refused_call(protocol::kToolRefusedDenied, "A person has denied this call.");
    }
    if (word.answer == governance::ApprovalAnswer::kExpired) {
        co_return refused_call(
            protocol::kToolRefusedNotApproved, "This call was not approved in time.");
    }
    if (reviews) {
        gate_.review(action.server, action.tool, action.digest);
        on_reviews();
    }
    if (call->hooks.on_approved) {
        call->hooks.on_approved();
    }
    co_return std::nullopt;
}

asio::awaitable<ToolOutcome> ToolBroker::send(std::shared_ptr<Call> call, std::string digest) {
    const Found found = find(call->what.caller, call->what.name);
    if (found.tool == nullptr || found.tool->digest != digest) {
        co_return refused_call(
            protocol::kToolRefusedUnavailable, "The tool is gone, or has changed in the meantime.");
    }
    const bool wraps = found.tool->wraps_result;
    const std::shared_ptr<ToolServer> server = found.server;
    call->server = server;
    call->id = server->take_id();
    std::string tool = found.tool->name;
    std::string arguments(call->arguments.text());
    const RpcAnswer answer = co_await server->call(std::move(tool), std::move(arguments), call->id);
    if (answer->has_error()) {
        co_return failed_call(answer->error());
    }
    ToolOutcome outcome;
    if (answer->value().bytes <= kReadAtOnceBytesMax) {
        outcome = read_call_result(answer->value().message, wraps);
    } else {
        std::function<std::optional<ToolOutcome>()> slice = [answer, wraps] {
            return std::optional(read_call_result(answer->value().message, wraps));
        };
        outcome = co_await run_elsewhere<ToolOutcome>(io_, *work_thread_, std::move(slice));
    }
    if (outcome.content.size() <= limits::kToolResultBytesMax || call->given_up) {
        co_return outcome;
    }
    std::shared_ptr<session::ToolResultFiles> files;
    if (call->hooks.result_files) {
        files = call->hooks.result_files();
    }
    std::function<std::optional<ToolOutcome>()> slice =
        [answer, wraps, files, execution = call->what.caller.execution_id] {
            return std::optional(
                keep_long_result(files.get(), execution, answer->value().message, wraps));
        };
    co_return co_await run_elsewhere<ToolOutcome>(io_, *work_thread_, std::move(slice));
}

}  // namespace cellkeep::tools
