// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/tools/tool_answer.hpp"

#include "kernel-manager/http/message/target.hpp"
#include "kernel-manager/mcp/limits.hpp"

#include <utility>

namespace cellkeep::mcp {

namespace {

bool continues_character(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

}  // namespace

std::string_view to_string(State state) {
    switch (state) {
        case State::kKept:
            return "kept";
        case State::kRestored:
            return "restored";
        case State::kLost:
            return "lost";
    }
    return "lost";
}

void ToolAnswer::add_text(std::string text) {
    content.push_back({{"type", "text"}, {"text", std::move(text)}});
}

ToolAnswer done_answer(State state, nlohmann::json structured, const std::string& text) {
    ToolAnswer answer;
    answer.structured = std::move(structured);
    answer.structured["state"] = to_string(state);
    answer.add_text(text + "\n[state " + std::string(to_string(state)) + "]");
    return answer;
}

ToolAnswer refuse(Refusal refusal) {
    ToolAnswer answer;
    answer.failed = true;
    answer.add_text(
        refusal.kind + ": " + refusal.message +
        (refusal.hint.empty() ? std::string() : "\nhint: " + refusal.hint) + "\n[state " +
        std::string(to_string(refusal.state)) + "]");
    answer.structured = {
        {"state", to_string(refusal.state)},
        {"error",
         {{"kind", std::move(refusal.kind)},
          {"message", std::move(refusal.message)},
          {"hint", std::move(refusal.hint)}}}};
    return answer;
}

ToolAnswer refuse(const Error& error, State state) {
    return refuse(Refusal{
        std::string(cellkeep::to_string(error.code())), error.message(), error.hint(), state});
}

ToolAnswer refuse_opening(const Error& error) {
    if (error.code() != ErrorCode::kUnavailable || error.field() != "environment") {
        return refuse(error);
    }
    return refuse(Refusal{
        "preparing",
        "The image that sessions run from is still being made. That takes up to two minutes, once.",
        "Make the same call again.",
        State::kKept});
}

nlohmann::json to_json(const ToolAnswer& answer) {
    return {
        {"content", answer.content},
        {"structuredContent", answer.structured},
        {"isError", answer.failed}};
}

void drop_links(nlohmann::json& content) {
    nlohmann::json kept = nlohmann::json::array();
    for (nlohmann::json& part : content) {
        if (part.at("type") != "resource_link") {
            kept.push_back(std::move(part));
        }
    }
    content = std::move(kept);
}

ShownText show_text(std::string_view text, const std::string& note) {
    if (text.size() <= kTextHeadBytes + kTextTailBytes) {
        return {std::string(text), 0};
    }
    std::size_t head = kTextHeadBytes;
    while (head > 0 && continues_character(text[head])) {
        --head;
    }
    std::size_t tail = text.size() - kTextTailBytes;
    while (tail < text.size() && continues_character(text[tail])) {
        ++tail;
    }
    const std::size_t omitted = tail - head;
    std::string shown(text.substr(0, head));
    shown += "\n[… " + std::to_string(omitted) + " bytes omitted" +
             (note.empty() ? std::string() : "; " + note) + " …]\n";
    shown += text.substr(tail);
    return {std::move(shown), omitted};
}

std::string file_uri(std::string_view session_id, std::string_view path) {
    std::string uri = "cellkeep://sessions/" + std::string(session_id) + "/files";
    while (!path.empty()) {
        const std::size_t slash = path.find('/');
        uri += "/" + http::encode_segment(std::string(path.substr(0, slash)));
        path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
    }
    return uri;
}

}  // namespace cellkeep::mcp
