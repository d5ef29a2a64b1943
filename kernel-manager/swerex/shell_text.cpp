// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/swerex/shell_text.hpp"

#include "protocol/utf8.hpp"

#include <algorithm>
#include <charconv>

namespace cellkeep::swerex {

namespace {

/// Digits of an exit code.
constexpr std::size_t kCodeDigitsMax = 3;
constexpr char kEscape = '\x1B';

/// What follows the prompt's own text: ":NUMBER:".
std::optional<TextEnd> read_prompt(std::string_view text, std::size_t at, std::string_view prompt) {
    const std::size_t digits = at + prompt.size() + 1;
    const std::size_t colon = text.find(':', digits);
    const bool whole = digits <= text.size() && text[digits - 1] == ':' &&
                       colon != std::string_view::npos && colon - digits <= kCodeDigitsMax;
    if (!whole) {
        return std::nullopt;
    }
    unsigned code = 0;  // so that no sign is one
    const auto [stop, failed] = std::from_chars(text.data() + digits, text.data() + colon, code);
    if (failed != std::errc() || stop != text.data() + colon) {
        return std::nullopt;
    }
    return TextEnd{at, colon + 1, static_cast<int>(code), {}};
}

std::optional<TextEnd> find_prompt(
    std::string_view text, std::size_t from, std::string_view prompt) {
    for (std::size_t at = text.find(prompt, from); at != std::string_view::npos;
         at = text.find(prompt, at + 1)) {
        if (auto end = read_prompt(text, at, prompt)) {
            return end;
        }
    }
    return std::nullopt;
}

/// The end of an escape sequence that begins at `at`: ESC, a byte from @ to _, then parameters,
/// intermediates and a final byte.
std::size_t skip_sequence(std::string_view text, std::size_t at) {
    const auto between = [&text](std::size_t place, char least, char most) {
        return place < text.size() && text[place] >= least && text[place] <= most;
    };
    std::size_t end = at + 1;
    if (!between(end, '@', '_')) {
        return at;
    }
    ++end;
    while (between(end, '0', '?')) {
        ++end;
    }
    while (between(end, ' ', '/')) {
        ++end;
    }
    return between(end, '@', '~') ? end + 1 : at;
}

}  // namespace

std::optional<TextEnd> find_text_end(
    std::string_view text,
    std::size_t from,
    std::string_view prompt,
    const std::vector<std::string>& expected) {
    const auto begin_for = [from](std::size_t length) { return from - std::min(from, length); };
    auto first = find_prompt(text, begin_for(prompt.size() + kCodeDigitsMax + 2), prompt);
    for (const std::string& wanted : expected) {
        const std::size_t at = text.find(wanted, begin_for(wanted.size()));
        if (at != std::string_view::npos && (!first || at < first->at)) {
            first = TextEnd{at, at + wanted.size(), std::nullopt, wanted};
        }
    }
    return first;
}

std::string plain_text(std::string_view text) {
    std::string plain;
    plain.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        if (text[at] == kEscape) {
            if (const std::size_t end = skip_sequence(text, at); end != at) {
                at = end;
                continue;
            }
        }
        if (!(text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n')) {
            plain += text[at];
        }
        ++at;
    }
    return plain;
}

std::string_view stripped(std::string_view text) {
    constexpr std::string_view kBlanks = " \t\r\n\v\f";
    const std::size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool is_utf8(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = protocol::utf8_length(text, at);
        if (length == 0) {
            return false;
        }
        at += length;
    }
    return true;
}

}  // namespace cellkeep::swerex
