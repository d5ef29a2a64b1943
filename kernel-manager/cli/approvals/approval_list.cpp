// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/approvals/approval_list.hpp"

#include "kernel-manager/cli/json_field.hpp"

namespace cellkeep::cli {

namespace {

constexpr std::string_view kCutMark = " … (--json shows more)";

bool is_continuation_byte(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// U+0080 to U+009F, which terminals obey as they obey an escape.
bool begins_c1_control(std::string_view text, std::size_t at) {
    return text[at] == '\xC2' && at + 1 < text.size() &&
           static_cast<unsigned char>(text[at + 1]) < 0xA0U;
}

std::string why_asked(const std::string& reason) {
    if (reason == "new_tool") {
        return "no person has reviewed this tool yet; if you allow the call, you also review the "
               "tool";
    }
    if (reason == "changed_tool") {
        return "this tool has changed since it was reviewed; to allow the call is to review it, "
               "too";
    }
    return "a rule of the server asks about calls of this tool";
}

std::string approval_text(const nlohmann::json& approval) {
    const auto field = [&](const char* name) { return terminal_line(text_field(approval, name)); };
    std::string text = field("id") + "  " + field("tool") + "\n";
    text += "    session " + field("session_id") + " of " + field("owner") + ", until " +
            field("expires_at") + "\n";
    text += "    why: " + why_asked(text_field(approval, "reason")) + "\n";
    text += "    the code's arguments: " + field("arguments") + "\n";
    if (const std::string description = field("description"); !description.empty()) {
        text += "    the tool server's description: " + description + "\n";
    }
    return text;
}

}  // namespace

std::string terminal_line(std::string_view text) {
    std::string line;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (line.size() >= kShownTextBytesMax && !is_continuation_byte(text[at])) {
            return line.append(kCutMark);
        }
        const auto byte = static_cast<unsigned char>(text[at]);
        if (byte < 0x20U || byte == 0x7FU) {
            line += ' ';
        } else if (begins_c1_control(text, at)) {
            line += ' ';
            ++at;
        } else {
            line += text[at];
        }
    }
    return line;
}

std::string approval_list(const nlohmann::json& answer) {
    std::string text;
    for (const nlohmann::json& approval : array_field(answer, "approvals")) {
        if (approval.is_object()) {
            text += approval_text(approval);
        }
    }
    return text.empty() ? "Nothing waits for an approval.\n" : text;
}

}  // namespace cellkeep::cli
