// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/asking/questions.hpp"

#include "kernel-manager/mcp/limits.hpp"

#include <utility>

namespace cellkeep::mcp {

namespace {

Error client_gone() {
    return {ErrorCode::kCancelled, "The client has gone without an answer."};
}

Result<nlohmann::json> read_reply(const nlohmann::json& response) {
    if (const auto result = response.find("result"); result != response.end()) {
        if (result->is_object()) {
            return *result;
        }
        return Error(ErrorCode::kProtocol, "The client's result is not an object.");
    }
    const auto error = response.find("error");
    const auto text = error != response.end() && error->is_object()
                          ? error->value("message", nlohmann::json())
                          : nlohmann::json();
    return Error(
        ErrorCode::kProtocol,
        "The client refused: " + (text.is_string() ? text.get<std::string>() : "no reason given"));
}

}  // namespace

Result<Questions::Question> Questions::add() {
    if (closed_) {
        return client_gone();
    }
    if (open_.size() >= kQuestionsMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "The client has " + std::to_string(kQuestionsMax) + " questions to answer already.");
    }
    Question question{"ask_" + std::to_string(++last_), std::make_shared<Reply>(io_)};
    open_.emplace(question.id, question.reply);
    return question;
}

bool Questions::deliver(const Message& response) {
    const auto found =
        response.id.is_string() ? open_.find(response.id.get<std::string>()) : open_.end();
    if (found == open_.end()) {
        return false;
    }
    const std::shared_ptr<Reply> reply = std::move(found->second);
    open_.erase(found);
    reply->set(read_reply(response.response));
    return true;
}

void Questions::close() {
    closed_ = true;
    for (const auto& [id, reply] : std::exchange(open_, {})) {
        reply->set(client_gone());
    }
}

}  // namespace cellkeep::mcp
