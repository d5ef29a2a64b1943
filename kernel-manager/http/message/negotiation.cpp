// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/negotiation.hpp"

#include "kernel-manager/http/message/headers.hpp"
#include "protocol/support/text.hpp"

#include <charconv>

namespace cellkeep::http {

namespace {

/// The part before the separator; the rest stays in text. Quoted strings hold no separators.
std::string_view take_until(std::string_view& text, char separator) {
    bool quoted = false;
    std::size_t end = 0;
    while (end < text.size() && (quoted || text[end] != separator)) {
        if (text[end] == '"') {
            quoted = !quoted;
        } else if (quoted && text[end] == '\\') {
            ++end;
        }
        ++end;
    }
    end = end < text.size() ? end : text.size();
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(end < text.size() ? end + 1 : end);
    return trim(part);
}

/// 0 to 1000; nothing if it is none ("q=1.5").
std::optional<int> parse_quality(std::string_view text) {
    // weight (RFC 9110, section 12.4.2): 0 or 1 and up to three digits behind the point.
    if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1') ||
        (text.size() > 1 && text[1] != '.')) {
        return std::nullopt;
    }
    int value = text[0] == '1' ? 1000 : 0;
    int unit = 100;
    for (const char digit : text.substr(text.size() > 1 ? 2 : 1)) {
        if (digit < '0' || digit > '9') {
            return std::nullopt;
        }
        value += unit * (digit - '0');
        unit /= 10;
    }
    return value <= 1000 ? std::optional(value) : std::nullopt;
}

struct Range {
    std::string_view type;
    int quality = 1000;
    bool usable = true;  // no parameter that no offer of ours has
};

std::optional<Range> parse_range(std::string_view text) {
    Range range;
    range.type = take_until(text, ';');
    if (range.type.find('/') == std::string_view::npos) {
        return std::nullopt;
    }
    while (!text.empty()) {
        std::string_view parameter = take_until(text, ';');
        const std::string_view name = take_until(parameter, '=');
        if (equals_ignoring_case(name, "q")) {
            const auto quality = parse_quality(trim(parameter));
            if (!quality) {
                return std::nullopt;
            }
            range.quality = *quality;
        } else if (!name.empty() && !equals_ignoring_case(name, "charset")) {
            range.usable = false;
        }
    }
    return range;
}

/// How exactly the range names the offer: 0 not at all, 1 "*/*", 2 "type/*", 3 by name.
int specificity(std::string_view range, std::string_view offer) {
    if (equals_ignoring_case(range, offer)) {
        return 3;
    }
    const std::string_view family = offer.substr(0, offer.find('/') + 1);
    if (range.size() == family.size() + 1 && range.back() == '*' &&
        equals_ignoring_case(range.substr(0, family.size()), family)) {
        return 2;
    }
    return range == "*/*" ? 1 : 0;
}

}  // namespace

std::optional<std::size_t> choose_media_type(
    std::string_view accept, const std::vector<std::string_view>& offers) {
    if (trim(accept).empty()) {
        return offers.empty() ? std::nullopt : std::optional<std::size_t>(0);
    }
    std::vector<int> best(offers.size(), 0);
    std::vector<int> quality(offers.size(), 0);
    while (!accept.empty()) {
        const auto range = parse_range(take_until(accept, ','));
        if (!range || !range->usable) {
            continue;
        }
        for (std::size_t i = 0; i < offers.size(); ++i) {
            const int exact = specificity(range->type, offers[i]);
            if (exact > best[i]) {
                best[i] = exact;
                quality[i] = range->quality;
            }
        }
    }
    std::optional<std::size_t> chosen;
    for (std::size_t i = 0; i < offers.size(); ++i) {
        if (quality[i] > 0 && (!chosen || quality[i] > quality[*chosen])) {
            chosen = i;
        }
    }
    return chosen;
}

bool prefers(std::string_view prefer, std::string_view preference) {
    while (!prefer.empty()) {
        std::string_view one = take_until(prefer, ',');
        std::string_view named = take_until(one, ';');
        if (equals_ignoring_case(take_until(named, '='), preference)) {
            return true;
        }
    }
    return false;
}

}  // namespace cellkeep::http
