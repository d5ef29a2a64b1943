// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/mcp/setup/json_edit.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace cellkeep::cli {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

Error no_json(std::string why) {
    return {
        ErrorCode::kInvalidArgument,
        "The file is not as this program can change it safely: " + std::move(why) + ".",
        "Add the entry by hand."};
}

/// Where a member of an object stands in the text.
struct MemberSpan {
    std::string name;
    std::size_t begin = 0;  // of the name's quote
    std::size_t value = 0;
    std::size_t end = 0;  // behind the value
};

struct ObjectSpan {
    std::size_t open = 0;   // of the brace
    std::size_t close = 0;  // of the other
    std::vector<MemberSpan> members;

    const MemberSpan* find(std::string_view name) const {
        for (const MemberSpan& member : members) {
            if (member.name == name) {
                return &member;
            }
        }
        return nullptr;
    }
};

/// Reads a text that is known to be JSON with comments.
class JsonScanner {
 public:
    explicit JsonScanner(std::string_view text) : text_(text) {}

    /// The object that begins at or after `at`; nothing if something else does.
    std::optional<ObjectSpan> object(std::size_t at) const {
        at = skip_blank(at);
        if (at >= text_.size() || text_[at] != '{') {
            return std::nullopt;
        }
        ObjectSpan found;
        found.open = at;
        at = skip_blank(at + 1);
        while (at < text_.size() && text_[at] == '"') {
            MemberSpan member;
            member.begin = at;
            const std::size_t name_end = skip_string(at);
            member.name = nlohmann::json::parse(text_.substr(at, name_end - at), nullptr, false)
                              .get<std::string>();
            member.value = skip_blank(skip_blank(name_end) + 1);  // behind the colon
            member.end = skip_value(member.value);
            found.members.push_back(member);
            at = skip_blank(member.end);
            if (at < text_.size() && text_[at] == ',') {
                at = skip_blank(at + 1);
            }
        }
        found.close = at;
        return found;
    }

 private:
    std::size_t skip_blank(std::size_t at) const {
        while (at < text_.size()) {
            if (text_.substr(at, 2) == "//") {
                at = std::min(text_.find('\n', at), text_.size());
            } else if (text_.substr(at, 2) == "/*") {
                const std::size_t end = text_.find("*/", at + 2);
                at = end == std::string_view::npos ? text_.size() : end + 2;
            } else if (std::string_view(" \t\r\n").find(text_[at]) != std::string_view::npos) {
                ++at;
            } else {
                break;
            }
        }
        return at;
    }

    /// Behind the closing quote.
    std::size_t skip_string(std::size_t at) const {
        for (++at; at < text_.size() && text_[at] != '"'; ++at) {
            at += text_[at] == '\\' ? 1U : 0U;
        }
        return std::min(at + 1, text_.size());
    }

    std::size_t skip_value(std::size_t at) const {
        std::size_t depth = 0;
        while (at < text_.size()) {
            const char c = text_[at];
            if (c == '"') {
                at = skip_string(at);
            } else if (c == '{' || c == '[') {
                ++depth;
                ++at;
            } else if (c == '}' || c == ']') {
                --depth;
                ++at;
            } else {
                at = depth > 0 ? at + 1 : skip_literal(at);
            }
            if (depth == 0) {
                return at;
            }
            at = skip_blank(at);
        }
        return at;
    }

    std::size_t skip_literal(std::size_t at) const {
        return std::min(text_.find_first_of(" \t\r\n,]}/", at), text_.size());
    }

    std::string_view text_;
};

/// The blanks before the first thing on the line of `at`.
std::string indent_at(std::string_view text, std::size_t at) {
    const std::size_t newline = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
    const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    const std::size_t end = std::min(text.find_first_not_of(" \t", begin), at);
    return std::string(text.substr(begin, end - begin));
}

std::string member_text(
    const std::string& name, const nlohmann::ordered_json& value, const std::string& indent) {
    std::string lines = value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
    for (std::size_t at = lines.find('\n'); at != std::string::npos;
         at = lines.find('\n', at + indent.size() + 1)) {
        lines.insert(at + 1, indent);
    }
    return nlohmann::json(name).dump() + ": " + lines;
}

/// Before the first member, so that no line of another one changes, or as the only one.
std::string insert_member(
    std::string text,
    const ObjectSpan& object,
    const std::string& name,
    const nlohmann::ordered_json& value) {
    if (!object.members.empty()) {
        const std::size_t first = object.members.front().begin;
        const bool own_line = text.find('\n', object.open) < first;
        const std::string indent = indent_at(text, first);
        const std::string behind = own_line ? ",\n" + indent : ", ";
        return text.insert(first, member_text(name, value, indent) + behind);
    }
    const std::string outer = indent_at(text, object.open);
    const std::string inner = outer + "  ";
    // What stands between the braces, such as a comment, stays.
    return text.insert(
        object.open + 1, "\n" + inner + member_text(name, value, inner) + "\n" + outer);
}

std::string erase_member(std::string text, const ObjectSpan& object, const MemberSpan& member) {
    const auto at = static_cast<std::size_t>(&member - object.members.data());
    if (at > 0) {
        const std::size_t from = object.members[at - 1].end;
        return text.erase(from, member.end - from);
    }
    if (object.members.size() > 1) {
        return text.erase(member.begin, object.members[1].begin - member.begin);
    }
    const std::size_t blank = text.find_last_not_of(" \t\r\n", member.begin - 1) + 1;
    const std::size_t next = std::min(text.find_first_not_of(" \t\r\n", member.end), object.close);
    return text.erase(blank, next - blank);
}

nlohmann::json parse_with_comments(std::string_view text) {
    return nlohmann::json::parse(text, nullptr, false, true);
}

bool says_nothing_at_all(std::string_view text) {
    return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

struct OpenedJson {
    std::string_view mark;  // what stands before the text
    std::string text;
    nlohmann::json value;
    ObjectSpan root;
};

Result<OpenedJson> open_json(const std::string& text) {
    OpenedJson opened;
    opened.mark = text.starts_with(kByteOrderMark) ? kByteOrderMark : "";
    opened.text = text.substr(opened.mark.size());
    opened.value = parse_with_comments(opened.text);
    if (!opened.value.is_object()) {
        return no_json("it is no JSON object");
    }
    const auto root = JsonScanner(opened.text).object(0);
    if (!root) {
        return no_json("it is no JSON object");
    }
    opened.root = *root;
    return opened;
}

/// The text, if it means what was wanted.
Result<std::string> checked(
    const OpenedJson& opened, const std::string& text, const nlohmann::json& wanted) {
    if (parse_with_comments(text) != wanted) {
        return no_json("a key may stand in it twice");
    }
    return std::string(opened.mark) + text;
}

}  // namespace

Result<std::string> set_json_member(
    const std::string& text,
    std::string_view container,
    const std::string& name,
    const nlohmann::ordered_json& value) {
    const std::string key(container);
    if (says_nothing_at_all(text)) {
        return nlohmann::ordered_json({{key, {{name, value}}}}).dump(2) + "\n";
    }
    BOOST_OUTCOME_TRY(const OpenedJson opened, open_json(text));
    nlohmann::json wanted = opened.value;
    if (wanted.contains(key) && !wanted[key].is_object()) {
        return no_json("\"" + key + "\" is no object");
    }
    wanted[key][name] = nlohmann::json(value);
    const MemberSpan* outer = opened.root.find(container);
    if (outer == nullptr) {
        const nlohmann::ordered_json whole = {{name, value}};
        return checked(opened, insert_member(opened.text, opened.root, key, whole), wanted);
    }
    const auto object = JsonScanner(opened.text).object(outer->value);
    if (!object) {
        return no_json("\"" + key + "\" is no object");
    }
    const MemberSpan* member = object->find(name);
    if (member == nullptr) {
        return checked(opened, insert_member(opened.text, *object, name, value), wanted);
    }
    std::string changed = opened.text;
    const std::string whole = member_text(name, value, indent_at(opened.text, member->begin));
    changed.replace(member->begin, member->end - member->begin, whole);
    return checked(opened, changed, wanted);
}

Result<std::string> remove_json_member(
    const std::string& text, std::string_view container, const std::string& name) {
    const Error absent(ErrorCode::kNotFound, "The file has no such entry.");
    if (says_nothing_at_all(text)) {
        return absent;
    }
    BOOST_OUTCOME_TRY(const OpenedJson opened, open_json(text));
    const MemberSpan* outer = opened.root.find(container);
    const auto object =
        outer == nullptr ? std::nullopt : JsonScanner(opened.text).object(outer->value);
    const MemberSpan* member = object ? object->find(name) : nullptr;
    if (member == nullptr) {
        return absent;
    }
    nlohmann::json wanted = opened.value;
    wanted[std::string(container)].erase(name);
    return checked(opened, erase_member(opened.text, *object, *member), wanted);
}

Result<std::string> remove_empty_json_object(const std::string& text, std::string_view container) {
    BOOST_OUTCOME_TRY(const OpenedJson opened, open_json(text));
    const MemberSpan* member = opened.root.find(container);
    const std::string key(container);
    if (member == nullptr || opened.value[key] != nlohmann::json::object()) {
        return Error(ErrorCode::kNotFound, "The file has no such empty object.");
    }
    nlohmann::json wanted = opened.value;
    wanted.erase(key);
    return checked(opened, erase_member(opened.text, opened.root, *member), wanted);
}

}  // namespace cellkeep::cli
