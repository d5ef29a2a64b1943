// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/asking/ask.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "protocol/sha256.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace cellkeep::mcp {

namespace asio = boost::asio;

namespace {

RpcError bad_input(std::string why) {
    return {RpcCode::kInvalidParams, std::move(why), {}, {}};
}

/// What a memory is for: nobody else's request, and no other one.
std::string subject_of(const Call& call, const Message& message) {
    protocol::Sha256 digest;
    digest.update_field(call.principal().name);
    digest.update_field(message.method);
    digest.update_field(message.params_digest);
    return digest.finish();
}

/// A result that asks what has not been answered.
Answerer::Answer input_required(
    Call& call,
    const std::vector<InputRequest>& requests,
    const nlohmann::json& memory,
    StateSeal& seal) {
    nlohmann::json result = {{"resultType", "input_required"}};
    for (const InputRequest& request : requests) {
        if (!call.input.responses.contains(request.key)) {
            result["inputRequests"][request.key] = {
                {"method", request.method}, {"params", request.params}};
        }
    }
    if (!memory.is_null()) {
        auto sealed = seal.seal(call.input.subject, memory, std::chrono::system_clock::now());
        if (sealed.has_error()) {
            return RpcError{RpcCode::kInternalError, sealed.error().message(), {}, {}};
        }
        result["requestState"] = std::move(sealed).value();
    }
    return result;
}

/// The answers that came with the request, or the result that asks for them.
Asked take_answers(
    Call& call,
    const std::vector<InputRequest>& requests,
    const nlohmann::json& memory,
    StateSeal& seal) {
    Asked asked;
    for (const InputRequest& request : requests) {
        const auto answer = call.input.responses.find(request.key);
        if (answer == call.input.responses.end()) {
            asked.instead = input_required(call, requests, memory, seal);
            return asked;
        }
        if (std::string wrong = find_wrong_answer(request, *answer); !wrong.empty()) {
            asked.instead = bad_input(std::move(wrong));
            return asked;
        }
        asked.answers[request.key] = *answer;
    }
    call.input.responses = nlohmann::json::object();  // they answer no later questions
    return asked;
}

}  // namespace

std::string find_wrong_answer(const InputRequest& request, const nlohmann::json& answer) {
    if (!answer.is_object()) {
        return "\"" + request.key + "\" must be an object.";
    }
    if (request.method == "elicitation/create") {
        static constexpr std::array<std::string_view, 3> kActions = {"accept", "decline", "cancel"};
        const auto action = answer.find("action");
        const bool known =
            action != answer.end() && action->is_string() &&
            std::find(kActions.begin(), kActions.end(), action->get_ref<const std::string&>()) !=
                kActions.end();
        if (!known) {
            return "\"" + request.key + "\" has no action.";
        }
        if (*action == "accept" && !answer.value("content", nlohmann::json()).is_object()) {
            return "\"" + request.key + "\" accepts without a content.";
        }
    }
    if (request.method == "sampling/createMessage" && !answer.contains("content")) {
        return "\"" + request.key + "\" has no content.";
    }
    if (request.method == "roots/list" && !answer.value("roots", nlohmann::json()).is_array()) {
        return "\"" + request.key + "\" has no roots.";
    }
    return {};
}

asio::awaitable<Result<nlohmann::json>> put_question(
    std::shared_ptr<Call> call, InputRequest request, WatchQuestion watch) {
    auto added = call->client()->questions().add();
    if (added.has_error()) {
        co_return added.error();
    }
    const Questions::Question question = std::move(added).value();
    const auto reply = question.reply;
    asio::steady_timer patience(co_await asio::this_coro::executor, kAnswerPatience);
    patience.async_wait([reply](const boost::system::error_code& error) {
        if (!error) {
            reply->set(Error(ErrorCode::kTimeout, "The client gave no answer in time."));
        }
    });
    call->on_cancel(
        [reply] { reply->set(Error(ErrorCode::kCancelled, "The call was cancelled.")); });
    std::shared_ptr<void> watched;
    if (watch) {
        watched = watch(
            [reply] { reply->set(Error(ErrorCode::kCancelled, "Nobody needs the answer.")); });
    }
    if (!reply->done() &&
        !call->notify(request_message(question.id, request.method, request.params))) {
        reply->set(Error(ErrorCode::kUnavailable, "The client takes no questions now."));
    }
    auto answer = co_await Questions::Reply::wait(reply);
    call->on_cancel({});
    patience.cancel();
    call->client()->questions().forget(question.id);
    if (answer.has_error() && answer.error().code() != ErrorCode::kProtocol) {
        (void)call->notify(
            notification_message("notifications/cancelled", {{"requestId", question.id}}));
    }
    co_return answer;
}

RpcError missing_capability(std::string_view method) {
    const std::string name(capability_for(method));
    return {
        RpcCode::kMissingCapability,
        "The client does not declare the capability \"" + name + "\".",
        {{"requiredCapabilities", {{name, nlohmann::json::object()}}}},
        {}};
}

std::optional<RpcError> take_input(Call& call, const Message& message, const StateSeal& seal) {
    call.input.subject = subject_of(call, message);
    if (const auto responses = message.params.find("inputResponses");
        responses != message.params.end()) {
        if (!responses->is_object()) {
            return bad_input("\"inputResponses\" must be an object.");
        }
        call.input.responses = *responses;
    }
    const auto state = message.params.find("requestState");
    if (state == message.params.end()) {
        return std::nullopt;
    }
    if (!state->is_string()) {
        return bad_input("\"requestState\" must be a string.");
    }
    auto memory = seal.open(
        state->get_ref<const std::string&>(), call.input.subject, std::chrono::system_clock::now());
    if (memory.has_error()) {
        return bad_input(memory.error().message());
    }
    call.input.memory = std::move(memory).value();
    return std::nullopt;
}

asio::awaitable<Asked> ask_client(
    std::shared_ptr<Call> call,
    std::vector<InputRequest> requests,
    nlohmann::json memory,
    StateSeal& seal) {
    Asked asked;
    for (const InputRequest& request : requests) {
        if (!call->peer().capabilities.answers(request.method)) {
            asked.instead = missing_capability(request.method);
            co_return asked;
        }
    }
    if (call->peer().era == Era::kStateless) {
        co_return take_answers(*call, requests, memory, seal);
    }
    for (InputRequest& request : requests) {
        if (call->client() == nullptr || !call->has_listener()) {
            asked.instead = RpcError{
                RpcCode::kInvalidRequest,
                "The call asks its client something: accept text/event-stream.",
                {},
                {}};
            co_return asked;
        }
        const std::string key = request.key;
        WatchQuestion nobody;  // a variable: g++ 12 destroys such a temporary of a co_await twice
        auto answer = co_await put_question(call, request, std::move(nobody));
        std::string wrong = answer.has_error() ? answer.error().message()
                                               : find_wrong_answer(request, answer.value());
        if (!wrong.empty()) {
            asked.instead = RpcError{RpcCode::kInternalError, std::move(wrong), {}, {}};
            co_return asked;
        }
        asked.answers[key] = std::move(answer).value();
    }
    co_return asked;
}

}  // namespace cellkeep::mcp
