// SPDX-License-Identifier: Apache-2.0
//
// The shapes are facts that the issuers publish (GitHub, "Authentication token formats"; AWS IAM,
// "Unique identifiers"; Slack, "Token types"; RFC 7519 …). Lengths are minima where an issuer
// reserves the right to make them longer.
#include "kernel-manager/governance/secret_shape.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace cellkeep::session {

namespace {

/// How much of one value is looked at.
constexpr std::size_t kShapeLookAhead = 512;

enum class Alphabet { kUpperDigit, kHex, kAlnum, kWord, kToken };

bool contains(Alphabet alphabet, char c) {
    switch (alphabet) {
        case Alphabet::kUpperDigit:
            return (c >= 'A' && c <= 'Z') || is_digit(c);
        case Alphabet::kHex:
            return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'f');
        case Alphabet::kAlnum:
            return is_letter(c) || is_digit(c);
        case Alphabet::kWord:
            return is_word_char(c) || c == '-';
        case Alphabet::kToken:
            return is_word_char(c) || c == '-' || c == '.';
    }
    return false;
}

struct Shape {
    std::string_view prefix;
    Alphabet alphabet = Alphabet::kAlnum;
    std::size_t least = 0;  // characters after the prefix
    std::size_t most = 0;   // 0: any number; else the run must end there
    std::string_view name;
    bool mixed = false;  // must have a digit and letters of both cases
};

constexpr std::array kShapes = {
    Shape{"AKIA", Alphabet::kUpperDigit, 16, 16, "aws-key"},
    Shape{"ASIA", Alphabet::kUpperDigit, 16, 16, "aws-key"},
    Shape{"ABIA", Alphabet::kUpperDigit, 16, 16, "aws-key"},
    Shape{"ACCA", Alphabet::kUpperDigit, 16, 16, "aws-key"},
    Shape{"ghp_", Alphabet::kAlnum, 36, 0, "github-token"},
    Shape{"gho_", Alphabet::kAlnum, 36, 0, "github-token"},
    Shape{"ghu_", Alphabet::kAlnum, 36, 0, "github-token"},
    Shape{"ghs_", Alphabet::kAlnum, 36, 0, "github-token"},
    Shape{"ghr_", Alphabet::kAlnum, 36, 0, "github-token"},
    Shape{"github_pat_", Alphabet::kWord, 40, 0, "github-token"},
    Shape{"glpat-", Alphabet::kWord, 20, 0, "gitlab-token"},
    Shape{"gldt-", Alphabet::kWord, 20, 0, "gitlab-token"},
    Shape{"glrt-", Alphabet::kWord, 20, 0, "gitlab-token"},
    Shape{"sk-ant-", Alphabet::kWord, 20, 0, "anthropic-key", true},
    Shape{"sk-proj-", Alphabet::kWord, 20, 0, "openai-key", true},
    Shape{"sk-svcacct-", Alphabet::kWord, 20, 0, "openai-key", true},
    Shape{"sk-or-v1-", Alphabet::kHex, 40, 0, "api-key"},
    Shape{"sk-", Alphabet::kWord, 32, 0, "openai-key", true},
    Shape{"sk_live_", Alphabet::kAlnum, 16, 0, "stripe-key"},
    Shape{"sk_test_", Alphabet::kAlnum, 16, 0, "stripe-key"},
    Shape{"rk_live_", Alphabet::kAlnum, 16, 0, "stripe-key"},
    Shape{"rk_test_", Alphabet::kAlnum, 16, 0, "stripe-key"},
    Shape{"whsec_", Alphabet::kToken, 24, 0, "stripe-key"},
    Shape{"xoxb-", Alphabet::kWord, 20, 0, "slack-token"},
    Shape{"xoxp-", Alphabet::kWord, 20, 0, "slack-token"},
    Shape{"xoxa-", Alphabet::kWord, 20, 0, "slack-token"},
    Shape{"xoxr-", Alphabet::kWord, 20, 0, "slack-token"},
    Shape{"xoxs-", Alphabet::kWord, 20, 0, "slack-token"},
    Shape{"xoxe.", Alphabet::kToken, 20, 0, "slack-token"},
    Shape{"xapp-", Alphabet::kWord, 20, 0, "slack-token"},
    Shape{"AIza", Alphabet::kWord, 35, 35, "google-key"},
    Shape{"ya29.", Alphabet::kToken, 20, 0, "google-token"},
    Shape{"GOCSPX-", Alphabet::kWord, 28, 28, "google-secret"},
    Shape{"npm_", Alphabet::kAlnum, 36, 36, "npm-token"},
    Shape{"pypi-", Alphabet::kWord, 50, 0, "pypi-token", true},
    Shape{"hf_", Alphabet::kAlnum, 34, 34, "hugging-face-token"},
    Shape{"dop_v1_", Alphabet::kHex, 64, 64, "digitalocean-token"},
    Shape{"dapi", Alphabet::kHex, 32, 32, "databricks-token"},
    Shape{"shpat_", Alphabet::kHex, 32, 32, "shopify-token"},
    Shape{"hvs.", Alphabet::kWord, 24, 0, "vault-token"},
    Shape{"SG.", Alphabet::kToken, 60, 0, "sendgrid-key", true},
    Shape{"lin_api_", Alphabet::kAlnum, 40, 0, "linear-key"},
    Shape{"glsa_", Alphabet::kWord, 40, 0, "grafana-token"},
    Shape{"xai-", Alphabet::kAlnum, 70, 0, "api-key", true},
    Shape{"gsk_", Alphabet::kAlnum, 48, 0, "api-key", true},
    Shape{"AGE-SECRET-KEY-1", Alphabet::kUpperDigit, 58, 58, "age-key"},
};

struct Census {
    bool digit = false;
    bool lower = false;
    bool upper = false;
    bool other = false;
    bool hex = true;
    double entropy = 0;  // bits per character (Shannon)
};

Census take_census(std::string_view value) {
    Census census;
    std::array<unsigned, 256> counts{};
    for (const char c : value) {
        census.digit = census.digit || is_digit(c);
        census.upper = census.upper || (c >= 'A' && c <= 'Z');
        census.lower = census.lower || (c >= 'a' && c <= 'z');
        census.other = census.other || !(is_letter(c) || is_digit(c));
        census.hex = census.hex && contains(Alphabet::kHex, c);
        ++counts[static_cast<unsigned char>(c)];
    }
    for (const unsigned count : counts) {
        if (count > 0) {
            const double share = count / static_cast<double>(value.size());
            census.entropy -= share * std::log2(share);
        }
    }
    return census;
}

std::size_t run_of(Alphabet alphabet, std::string_view text, std::size_t at, std::size_t most) {
    const std::size_t end = most < text.size() - at ? at + most : text.size();
    std::size_t length = 0;
    while (at + length < end && contains(alphabet, text[at + length])) {
        ++length;
    }
    return length;
}

std::size_t match(const Shape& shape, std::string_view text) {
    if (!text.starts_with(shape.prefix)) {
        return 0;
    }
    const std::size_t begin = shape.prefix.size();
    const std::size_t run = run_of(shape.alphabet, text, begin, kShapeLookAhead);
    if (run < shape.least || (shape.most > 0 && run != shape.most)) {
        return 0;
    }
    if (shape.mixed) {
        const Census census = take_census(text.substr(begin, run));
        if (!census.digit || !census.upper || !census.lower) {
            return 0;
        }
    }
    return begin + run_of(shape.alphabet, text, begin, text.size());
}

/// JSON Web Token: two base64url objects, which begin with eyJ for {", and a signature (RFC 7519,
/// section 3.1).
std::size_t match_jwt(std::string_view text) {
    constexpr std::size_t kPartMin = 8;
    if (!text.starts_with("eyJ")) {
        return 0;
    }
    const std::size_t head = run_of(Alphabet::kWord, text, 0, kShapeLookAhead);
    if (head < kPartMin || !text.substr(head).starts_with(".eyJ")) {
        return 0;
    }
    const std::size_t body = run_of(Alphabet::kWord, text, head + 1, text.size());
    std::size_t end = head + 1 + body;
    if (body < kPartMin) {
        return 0;
    }
    if (end < text.size() && text[end] == '.') {
        end += 1 + run_of(Alphabet::kWord, text, end + 1, text.size());
    }
    return end;
}

bool ends_with_word(std::string_view name, std::string_view word) {
    if (name.size() < word.size()) {
        return false;
    }
    const std::size_t at = name.size() - word.size();
    for (std::size_t i = 0; i < word.size(); ++i) {
        if (to_lower(name[at + i]) != word[i]) {
            return false;
        }
    }
    // api_key, apiKey and KEY, but not monkey.
    return at == 0 || name[at - 1] == '_' || is_digit(name[at - 1]) ||
           (name[at] >= 'A' && name[at] <= 'Z' && name[at - 1] >= 'a' && name[at - 1] <= 'z');
}

bool contains_word(std::string_view name, std::string_view word) {
    return std::search(name.begin(), name.end(), word.begin(), word.end(), [](char a, char b) {
               return to_lower(a) == b;
           }) != name.end();
}

}  // namespace

ShapeMatch match_shape(std::string_view text) {
    // Nearly every word is ruled out by how it begins.
    static const std::array<bool, 256> begins_shape = [] {
        std::array<bool, 256> begins{};
        for (const Shape& shape : kShapes) {
            begins[static_cast<unsigned char>(shape.prefix.front())] = true;
        }
        begins['e'] = true;  // of a JWT
        return begins;
    }();
    constexpr std::size_t kLeast = 20;
    if (text.size() < kLeast || !begins_shape[static_cast<unsigned char>(text.front())] ||
        run_of(Alphabet::kToken, text, 0, kLeast) < kLeast) {
        return {};
    }
    for (const Shape& shape : kShapes) {
        if (const std::size_t length = match(shape, text); length > 0) {
            return {length, shape.name};
        }
    }
    if (const std::size_t length = match_jwt(text); length > 0) {
        return {length, "jwt"};
    }
    return {};
}

NameKind kind_of_name(std::string_view name) {
    constexpr std::size_t kNameMax = 128;
    if (name.size() > kNameMax) {
        return NameKind::kOrdinary;
    }
    for (const std::string_view word : {"password", "passwd", "pwd", "passphrase"}) {
        if (ends_with_word(name, word)) {
            return NameKind::kPassword;
        }
    }
    for (const std::string_view word : {"token", "secret", "apikey", "credentials", "credential"}) {
        if (ends_with_word(name, word)) {
            return NameKind::kSecret;
        }
    }
    constexpr std::array<std::string_view, 12> kOrdinaryKeys = {
        "public",
        "foreign",
        "primary",
        "sort",
        "cache",
        "partition",
        "group",
        "index",
        "idempotency",
        "object",
        "row",
        "translation"};
    const bool key = ends_with_word(name, "key") && name.size() > 3;
    if (key && std::none_of(kOrdinaryKeys.begin(), kOrdinaryKeys.end(), [&](auto word) {
            return contains_word(name, word);
        })) {
        return NameKind::kSecret;
    }
    return NameKind::kOrdinary;
}

bool looks_random(std::string_view value) {
    constexpr std::size_t kLeast = 16;
    value = value.substr(0, kShapeLookAhead);
    if (value.size() < kLeast || is_placeholder(value)) {
        return false;
    }
    const Census census = take_census(value);
    const bool letters = census.lower || census.upper;
    return census.digit && letters && census.entropy >= (census.hex ? 2.8 : 3.4);
}

bool looks_very_random(std::string_view value) {
    constexpr std::size_t kHexLeast = 32;
    if (!looks_random(value)) {
        return false;
    }
    const Census census = take_census(value.substr(0, kShapeLookAhead));
    const bool hex = census.hex && value.size() >= kHexLeast;
    const auto digits = std::count_if(value.begin(), value.end(), is_digit);
    const bool code =
        value.find('_') != std::string_view::npos || value.find('.') != std::string_view::npos;
    return hex || (census.upper && census.lower && digits >= 2 && !code && census.entropy >= 3.5);
}

bool looks_like_password(std::string_view value) {
    constexpr std::size_t kLeast = 6;
    constexpr std::size_t kMost = 256;
    if (value.size() < kLeast || value.size() > kMost || is_placeholder(value) ||
        value.find(' ') != std::string_view::npos) {
        return false;
    }
    const Census census = take_census(value);
    return (census.digit && (census.lower || census.upper)) || looks_random(value);
}

bool is_placeholder(std::string_view value) {
    if (value.empty() || value.find_first_of("{}<>$%*") != std::string_view::npos ||
        value.starts_with("[redacted:") || value.find("...") != std::string_view::npos) {
        return true;
    }
    for (const std::string_view word :
         {"password",
          "passwd",
          "secret",
          "example",
          "placeholder",
          "your_",
          "your-",
          "xxxx",
          "changeme",
          "redacted",
          "pass",
          "pwd",
          "token",
          "dummy"}) {
        const bool short_word = word.size() <= 5 && word.front() != 'y' && word != "xxxx";
        if (short_word ? value.size() == word.size() && contains_word(value, word)
                       : contains_word(value, word)) {
            return true;
        }
    }
    return false;
}

}  // namespace cellkeep::session
