// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/secrets/secret_mask.hpp"

#include "protocol/support/text.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace cellkeep::egress {

namespace {

constexpr std::size_t kShort = 4;
/// Authentication schemes (RFC 9110, section 16.4), and what services use as if it were one.
constexpr std::array<std::string_view, 8> kSchemes = {
    "Basic", "Bearer", "Digest", "DPoP", "Token", "ApiKey", "Api-Key", "Key"};

bool is_scheme(std::string_view word) {
    return std::any_of(kSchemes.begin(), kSchemes.end(), [word](std::string_view scheme) {
        return same_name(scheme, word);
    });
}

std::string_view behind_scheme(const Secret& secret) {
    const std::string_view value = secret.value;
    if (!secret.prefix.empty() && value.starts_with(secret.prefix)) {
        return trim(value.substr(secret.prefix.size()), " ");
    }
    const std::size_t space = value.find(' ');
    const bool scheme = space != std::string_view::npos && is_scheme(value.substr(0, space));
    return scheme ? trim(value.substr(space), " ") : value;
}

}  // namespace

std::vector<std::string> sensitive_parts(const Secret& secret) {
    const std::string_view behind = behind_scheme(secret);
    std::vector<std::string> parts = {behind.size() < kShort ? secret.value : std::string(behind)};
    if (!same_name(secret.binding.header, "Cookie")) {
        return parts;
    }
    std::string_view rest = secret.value;
    while (!rest.empty()) {
        const std::string_view pair = rest.substr(0, rest.find(';'));
        rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
        const std::size_t equals = pair.find('=');
        const std::string_view value =
            equals == std::string_view::npos ? pair : trim(pair.substr(equals + 1), " \"");
        if (value.size() >= kShort) {
            parts.emplace_back(value);
        }
    }
    return parts;
}

SecretMask::Pattern::Pattern(std::string text)
    : value(std::move(text)), fallback(value.size() + 1, 0) {
    std::size_t length = 0;
    for (std::size_t i = 1; i < value.size(); ++i) {
        while (length > 0 && value[i] != value[length]) {
            length = fallback[length];
        }
        length += value[i] == value[length] ? 1U : 0U;
        fallback[i + 1] = length;
    }
}

bool SecretMask::Pattern::advance(char c) {
    while (matched > 0 && value[matched] != c) {
        matched = fallback[matched];
    }
    matched += value[matched] == c ? 1U : 0U;
    if (matched < value.size()) {
        return false;
    }
    matched = fallback[matched];  // the next one may begin inside this one
    return true;
}

SecretMask::SecretMask(const std::vector<std::string>& values) {
    for (const std::string& value : values) {
        add(value);
    }
}

SecretMask::SecretMask(const std::vector<Secret>& granted, const Authority& target) {
    for (const Secret& secret : granted) {
        if (covers(secret.binding.host, target.host.text, target.port)) {
            for (std::string& part : sensitive_parts(secret)) {
                add(std::move(part));
            }
        }
    }
}

void SecretMask::add(std::string value) {
    if (!value.empty()) {
        patterns_.emplace_back(std::move(value));
    }
}

std::string SecretMask::feed(std::string_view bytes) {
    const std::size_t from = held_.size();
    held_ += bytes;
    for (std::size_t end = from + 1; end <= held_.size(); ++end) {
        const char c = bytes[end - from - 1];
        for (Pattern& pattern : patterns_) {
            if (pattern.advance(c)) {
                const std::size_t begin = std::max(pattern.covered, end - pattern.value.size());
                std::fill(
                    held_.begin() + static_cast<std::ptrdiff_t>(begin),
                    held_.begin() + static_cast<std::ptrdiff_t>(end),
                    '*');
                pattern.covered = end;
            }
        }
    }
    std::size_t keep = 0;
    for (const Pattern& pattern : patterns_) {
        keep = std::max(keep, pattern.matched);
    }
    const std::size_t gone = held_.size() - keep;
    std::string out = held_.substr(0, gone);
    held_.erase(0, gone);
    for (Pattern& pattern : patterns_) {
        pattern.covered -= std::min(pattern.covered, gone);
    }
    return out;
}

std::string SecretMask::finish() {
    for (Pattern& pattern : patterns_) {
        pattern.matched = 0;
        pattern.covered = 0;
    }
    return std::exchange(held_, {});
}

std::string SecretMask::mask(std::string_view text) const {
    SecretMask other = *this;
    (void)other.finish();
    std::string masked = other.feed(text);
    return masked + other.finish();
}

MessageHead SecretMask::mask(MessageHead head) const {
    head.reason = mask(head.reason);
    for (Field& field : head.fields) {
        field.name = mask(field.name);
        field.value = mask(field.value);
    }
    return head;
}

}  // namespace cellkeep::egress
