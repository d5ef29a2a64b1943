// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/governance/redaction.hpp"

#include "kernel-manager/governance/secret_shape.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {

namespace {

/// What is read ahead for one decision. With it the whole stays linear, whatever the text.
constexpr std::size_t kRedactionLookAhead = 512;
/// Deepest nesting of a document. Deeper values are dropped; the server logs none that deep.
constexpr int kDepthMax = 64;
constexpr std::string_view kMark = "[redacted:";

/// One secret in a text: [begin, end).
struct Found {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::string_view what;
};

bool is_space(char c) {
    return c == ' ' || c == '\t';
}

std::size_t skip_spaces(std::string_view text, std::size_t at) {
    const std::size_t most = std::min(text.size(), at + kRedactionLookAhead);
    while (at < most && is_space(text[at])) {
        ++at;
    }
    return at;
}

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
    return text.size() == lower.size() &&
           std::equal(text.begin(), text.end(), lower.begin(), [](char a, char b) {
               return to_lower(a) == b;
           });
}

/// The end of the run of characters that may be in a token, at most kRedactionLookAhead on.
std::size_t token_end(
    std::string_view text, std::size_t at, std::size_t most = kRedactionLookAhead) {
    const std::size_t last =
        std::min(text.size(), most > text.size() - at ? text.size() : at + most);
    while (at < last && is_token_char(text[at])) {
        ++at;
    }
    return at;
}

/// After a name: the position of the value that is assigned to it. Takes NAME=v, NAME: v, "NAME":
/// "v", os.environ["NAME"] = 'v', NAME => v, and tells whether the value is quoted.
struct Value {
    std::size_t begin = 0;
    bool quoted = false;
    bool spaced = false;
};

std::optional<Value> find_value(std::string_view text, std::size_t at) {
    if (at < text.size() && (text[at] == '"' || text[at] == '\'')) {
        ++at;
    }
    if (at < text.size() && text[at] == ']') {
        ++at;
    }
    const std::size_t before = at;
    at = skip_spaces(text, at);
    if (at >= text.size() || (text[at] != '=' && text[at] != ':')) {
        return std::nullopt;
    }
    ++at;
    if (at < text.size() && (text[at] == '=' || text[at] == '>')) {
        if (text[at] == '=' && text[at - 1] == '=') {
            return std::nullopt;  // a comparison
        }
        ++at;
    }
    Value value;
    value.begin = skip_spaces(text, at);
    value.spaced = before != at - 1 || value.begin != at;
    if (value.begin < text.size() && (text[value.begin] == '"' || text[value.begin] == '\'')) {
        ++value.begin;
        value.quoted = true;
    }
    return value;
}

/// NAME = value, where the name says that it is a secret and the value looks like one.
std::optional<Found> find_assigned(
    std::string_view text, std::string_view name, std::size_t name_end) {
    // Most words have no value behind them, which is sooner seen than what they mean.
    const auto value = find_value(text, name_end);
    if (!value.has_value()) {
        return std::nullopt;
    }
    const NameKind kind = kind_of_name(name);
    if (kind == NameKind::kOrdinary) {
        return std::nullopt;
    }
    std::size_t end = token_end(text, value->begin);
    if (kind == NameKind::kPassword && value->quoted) {
        // A password may hold anything; it ends with its quote.
        const char quote = text[value->begin - 1];
        const std::size_t most = std::min(text.size(), value->begin + kRedactionLookAhead);
        end = value->begin;
        while (end < most && text[end] != quote && text[end] != '\n') {
            ++end;
        }
    }
    const std::string_view candidate = text.substr(value->begin, end - value->begin);
    // A name that is called, indexed or formatted is code, not a value.
    const char next = end < text.size() ? text[end] : '\n';
    if (next == '(' || next == '[' || next == '{' || (value->quoted && next == '%')) {
        return std::nullopt;
    }
    const bool looks = kind == NameKind::kPassword && value->quoted ? looks_like_password(candidate)
                       : value->quoted || !value->spaced            ? looks_random(candidate)
                                                                    : looks_very_random(candidate);
    if (!looks) {
        return std::nullopt;
    }
    end = token_end(text, end, text.size());
    return Found{value->begin, end, kind == NameKind::kPassword ? "password" : "secret"};
}

/// The value of an Authorization header, with or without its scheme (RFC 9110, section 11.6.2).
std::optional<Found> find_authorization(
    std::string_view text, std::string_view name, std::size_t name_end) {
    const bool header = equals_ignoring_case(name, "authorization");
    std::size_t at = name_end;
    bool scheme = false;
    if (header) {
        const auto value = find_value(text, name_end);
        if (!value.has_value()) {
            return std::nullopt;
        }
        at = value->begin;
        std::size_t word = at;
        while (word < text.size() && word < at + 16 && is_letter(text[word])) {
            ++word;
        }
        const std::string_view first = text.substr(at, word - at);
        for (const std::string_view known : {"bearer", "basic", "token", "digest", "negotiate"}) {
            scheme = scheme || equals_ignoring_case(first, known);
        }
        at = scheme ? skip_spaces(text, word) : at;
    } else if (equals_ignoring_case(name, "bearer")) {
        at = skip_spaces(text, name_end);
        if (at == name_end) {
            return std::nullopt;
        }
    } else {
        return std::nullopt;
    }
    const std::size_t end = token_end(text, at);
    const std::string_view candidate = text.substr(at, end - at);
    const bool looks =
        scheme ? candidate.size() >= 8 && !is_placeholder(candidate) : looks_random(candidate);
    if (!looks) {
        return std::nullopt;
    }
    return Found{at, token_end(text, end, text.size()), "authorization"};
}

/// scheme://user:password@host, from the colon of "://" on (RFC 3986, section 3.2.1).
std::optional<Found> find_url_password(std::string_view text, std::size_t colon) {
    if (text.substr(colon, 3) != "://") {
        return std::nullopt;
    }
    const std::size_t begin = colon + 3;
    const std::size_t most = std::min(text.size(), begin + kRedactionLookAhead);
    std::size_t separator = 0;
    for (std::size_t at = begin; at < most; ++at) {
        const char c = text[at];
        if (c == '@') {
            if (separator == 0 || is_placeholder(text.substr(separator + 1, at - separator - 1))) {
                return std::nullopt;
            }
            return Found{begin, at, "password"};
        }
        if (c == ':' && separator == 0) {
            separator = at;
        }
        if (c <= ' ' || c == '/' || c == '"' || c == '\'' || c == '<' || c == '\\') {
            return std::nullopt;
        }
    }
    return std::nullopt;
}

/// A private key in PEM (RFC 7468), to its end or, if that is cut off, to the end of what is there.
std::optional<Found> find_private_key(std::string_view text, std::size_t at) {
    constexpr std::string_view kBegin = "-----BEGIN ";
    constexpr std::string_view kDashes = "-----";
    constexpr std::size_t kLabelMax = 64;
    constexpr std::size_t kBodyMin = 24;
    if (text.substr(at, kBegin.size()) != kBegin) {
        return std::nullopt;
    }
    const std::size_t label = at + kBegin.size();
    const std::size_t label_end = text.substr(label, kLabelMax).find(kDashes);
    if (label_end == std::string_view::npos ||
        text.substr(label, label_end).find("PRIVATE KEY") == std::string_view::npos) {
        return std::nullopt;
    }
    // Between two rows of dashes each character is looked at once.
    const std::size_t body = label + label_end + kDashes.size();
    const std::size_t end = std::min(text.find(kDashes, body), text.size());
    const auto letters = std::count_if(
        text.begin() + static_cast<std::ptrdiff_t>(body),
        text.begin() + static_cast<std::ptrdiff_t>(end),
        is_token_char);
    if (static_cast<std::size_t>(letters) < kBodyMin) {
        return std::nullopt;
    }
    // Without its end: as far as it can go on.
    std::size_t last = body;
    while (last < end && (is_token_char(text[last]) || text[last] == ' ' || text[last] == '\n' ||
                          text[last] == '\r' || text[last] == ':' || text[last] == ',')) {
        ++last;
    }
    while (last > body && (text[last - 1] == '\n' || text[last - 1] == ' ')) {
        --last;
    }
    if (text.substr(end, kDashes.size() + 3) == "-----END") {
        const std::size_t closing = text.substr(end + kDashes.size(), kLabelMax).find(kDashes);
        last = closing == std::string_view::npos ? text.size() : end + closing + 2 * kDashes.size();
    }
    return Found{at, std::min(last, text.size()), "private-key"};
}

/// A secret that begins exactly here, or after the word that does.
std::optional<Found> find_at(std::string_view text, std::size_t at, std::size_t word_end) {
    if (text[at] == '-') {
        return find_private_key(text, at);
    }
    if (text[at] == ':') {
        return find_url_password(text, at);
    }
    if (word_end == at) {
        return std::nullopt;
    }
    if (const auto shape = match_shape(text.substr(at)); shape.length > 0) {
        return Found{at, at + shape.length, shape.name};
    }
    const std::string_view word = text.substr(at, word_end - at);
    if (auto found = find_authorization(text, word, word_end)) {
        return found;
    }
    return find_assigned(text, word, word_end);
}

/// Of what an earlier redaction has put here.
std::size_t mark_length(std::string_view text, std::size_t at) {
    constexpr std::size_t kNameMax = 24;
    if (!text.substr(at).starts_with(kMark)) {
        return 0;
    }
    std::size_t end = at + kMark.size();
    while (end < text.size() && end < at + kMark.size() + kNameMax &&
           (is_letter(text[end]) || text[end] == '-')) {
        ++end;
    }
    return end < text.size() && text[end] == ']' ? end + 1 - at : 0;
}

/// Returns nothing if the text has no secrets: it can stay as it is.
std::optional<Redaction> find_any(std::string_view text) {
    std::optional<Redaction> result;
    std::size_t taken = 0;  // over into the result
    std::size_t at = 0;
    while (at < text.size()) {
        if (const std::size_t length = mark_length(text, at); length > 0) {
            at += length;
            continue;
        }
        std::size_t word_end = at;
        while (word_end < text.size() && is_word_char(text[word_end])) {
            ++word_end;
        }
        const auto found = find_at(text, at, word_end);
        if (!found.has_value()) {
            at = std::max(word_end, at + 1);
            continue;
        }
        if (!result) {
            result.emplace();
            result->text.reserve(text.size());
        }
        result->text.append(text.substr(taken, found->begin - taken));
        result->text.append(kMark).append(found->what).append("]");
        ++result->count;
        at = taken = found->end;
    }
    if (result) {
        result->text.append(text.substr(taken));
    }
    return result;
}

void redact_value(nlohmann::json& value, int depth);

void redact_members(nlohmann::json::object_t& object, int depth) {
    std::vector<std::pair<std::string, std::string>> renamed;  // a name says a secret seldom
    for (auto& [name, member] : object) {
        const bool secret = member.is_string() && kind_of_name(name) != NameKind::kOrdinary &&
                            looks_like_password(member.get_ref<const std::string&>());
        if (secret) {
            member = "[redacted:secret]";
        } else {
            redact_value(member, depth);
        }
        if (auto shown = find_any(name)) {
            renamed.emplace_back(name, std::move(shown->text));
        }
    }
    for (const auto& [name, shown] : renamed) {
        auto member = object.extract(name);
        object.insert_or_assign(shown, std::move(member.mapped()));
    }
}

void redact_value(nlohmann::json& value, int depth) {
    if (value.is_string()) {
        if (auto shown = find_any(value.get_ref<const std::string&>())) {
            value = std::move(shown->text);
        }
        return;
    }
    if (!value.is_structured()) {
        return;
    }
    if (depth >= kDepthMax) {
        value = nullptr;
        return;
    }
    if (value.is_object()) {
        redact_members(value.get_ref<nlohmann::json::object_t&>(), depth + 1);
        return;
    }
    for (nlohmann::json& element : value) {
        redact_value(element, depth + 1);
    }
}

}  // namespace

Redaction find_secrets(std::string_view text) {
    auto found = find_any(text);
    return found ? *std::move(found) : Redaction{std::string(text), 0};
}

std::string redact(std::string_view text) {
    return find_secrets(text).text;
}

nlohmann::json redact_json(nlohmann::json document) {
    redact_value(document, 0);
    return document;
}

}  // namespace cellkeep::session
