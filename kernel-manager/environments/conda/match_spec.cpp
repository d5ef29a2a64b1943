// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/conda/match_spec.hpp"

#include "protocol/support/text.hpp"

#include <algorithm>
#include <array>

namespace cellkeep::environments {

namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kSpecAlphanumeric =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view kOperators = "=<>!~";
constexpr std::string_view kVersionKey = "version=";

Error no_spec(const std::string& what) {
    return {ErrorCode::kInvalidArgument, what};
}

bool is_made_of(std::string_view text, std::string_view others) {
    return std::all_of(text.begin(), text.end(), [others](char c) {
        return kSpecAlphanumeric.find(c) != std::string_view::npos ||
               others.find(c) != std::string_view::npos;
    });
}

/// One of a list of versions.
struct Comparison {
    std::string_view comparison;  // "", "=", "==", ">=" …
    std::string version;          // without ".*"
    bool is_prefix = false;       // it ended in ".*"
};

/// conda takes "1.26*" for "1.26.*".
Result<Comparison> read_comparison(std::string_view text) {
    static constexpr std::array<std::string_view, 9> kComparisonsTaken = {
        "", "=", "==", "!=", "<", "<=", ">", ">=", "~="};
    const std::size_t begin = std::min(text.find_first_not_of(kOperators), text.size());
    Comparison found{.comparison = text.substr(0, begin), .version = {}};
    std::string_view version = text.substr(begin);
    if (version == "*") {
        found.is_prefix = true;
        version = {};
    } else if (version.ends_with('*')) {
        found.is_prefix = true;
        version.remove_suffix(version.ends_with(".*") ? 2 : 1);
    }
    const bool is_any = found.is_prefix && version.empty();
    const bool is_known =
        std::find(kComparisonsTaken.begin(), kComparisonsTaken.end(), found.comparison) !=
        kComparisonsTaken.end();
    if (!is_known || !is_made_of(version, ".!+_") ||
        (!is_any && (version.empty() || kDigits.find(version.front()) == std::string_view::npos)) ||
        version.ends_with('.')) {
        return no_spec("its version is not understood");
    }
    found.version = version;
    return found;
}

/// "==1.26.*" is for releases only: no such thing is behind "rc1".
bool can_be_prefix(const std::string& version) {
    return version.find_first_not_of("0123456789.!") == std::string::npos;
}

Result<std::string> equals(const Comparison& wanted, bool is_prefix) {
    if (!is_prefix || !can_be_prefix(wanted.version)) {
        if (wanted.is_prefix) {
            return no_spec("its version is not understood");
        }
        return "==" + wanted.version;
    }
    return "==" + wanted.version + ".*";
}

/// is_alone: "=1.26" means what begins so. In a list conda reads it in more than one way.
Result<std::string> translate(const Comparison& wanted, bool is_alone) {
    const std::string comparison(wanted.comparison);
    if (wanted.version.empty()) {
        if (is_alone && (comparison.empty() || comparison == "=" || comparison == "==")) {
            return std::string();
        }
        return no_spec("its version is not understood");
    }
    if (comparison.empty() || comparison == "=") {
        if (!is_alone && !wanted.is_prefix) {
            return no_spec("in a list of versions each needs a comparison (==, >=, < …)");
        }
        return equals(wanted, wanted.is_prefix || comparison == "=");
    }
    if (comparison == "==") {
        return equals(wanted, wanted.is_prefix);
    }
    if (comparison == "~=" && wanted.version.find('.') == std::string::npos) {
        return no_spec("~= needs a version with two numbers");
    }
    if (!wanted.is_prefix || comparison == ">=") {
        return comparison + wanted.version;
    }
    if (comparison == "!=" && can_be_prefix(wanted.version)) {
        return comparison + wanted.version + ".*";
    }
    return no_spec("* has no meaning behind " + comparison);
}

/// "=1.26.4=py311h64a7726_0": what "conda env export" writes.
Result<std::string> translate_with_build(std::string_view versions, std::string_view build) {
    BOOST_OUTCOME_TRY(const Comparison wanted, read_comparison(versions));
    const bool is_exact =
        !wanted.is_prefix &&
        (wanted.comparison.empty() || wanted.comparison == "=" || wanted.comparison == "==");
    if (!is_exact || build.empty() || !is_made_of(build, "._+")) {
        return no_spec("it chooses a build of conda's, and PyPI has none of these");
    }
    return "==" + wanted.version;
}

Result<std::string> translate_versions(std::string_view versions) {
    if (versions.find('|') != std::string_view::npos) {
        return no_spec("alternatives (|) are not taken: name one range of versions");
    }
    if (versions.find(',') == std::string_view::npos) {
        const std::size_t begin = versions.find_first_not_of(kOperators);
        const std::size_t build = versions.find_first_of(" =", std::min(begin, versions.size()));
        if (build != std::string_view::npos) {
            // A word behind a blank may as well be the next line's package.
            const bool is_doubtful =
                versions[build] == ' ' && kDigits.find(versions.back()) == std::string_view::npos;
            return translate_with_build(
                versions.substr(0, build), is_doubtful ? "" : versions.substr(build + 1));
        }
        BOOST_OUTCOME_TRY(const Comparison wanted, read_comparison(versions));
        return translate(wanted, true);
    }
    std::string translated;
    while (true) {
        const std::size_t comma = std::min(versions.find(','), versions.size());
        BOOST_OUTCOME_TRY(const Comparison wanted, read_comparison(versions.substr(0, comma)));
        BOOST_OUTCOME_TRY(const std::string one, translate(wanted, false));
        translated += (translated.empty() ? "" : ",") + one;
        if (comma == versions.size()) {
            return translated;
        }
        versions.remove_prefix(comma + 1);
    }
}

/// Blanks beside comparisons and commas have no meaning. One between two words begins a build.
std::string without_idle_blanks(std::string_view text) {
    constexpr std::string_view kSigns = "=<>!~,|";
    std::string kept;
    bool is_blank = false;
    for (const char c : text) {
        if (c == ' ' || c == '\t') {
            is_blank = true;
            continue;
        }
        if (is_blank && !kept.empty() && kSigns.find(c) == std::string_view::npos &&
            kSigns.find(kept.back()) == std::string_view::npos) {
            kept += ' ';
        }
        kept += c;
        is_blank = false;
    }
    return kept;
}

/// What "[version='>=1']" says, and nothing else in brackets.
Result<std::string_view> version_in_brackets(std::string_view text) {
    const Error others = no_spec("of what stands in brackets only one version is taken");
    if (!text.ends_with(']')) {
        return others;
    }
    std::string_view inside = trim(text.substr(1, text.size() - 2));
    if (!inside.starts_with(kVersionKey)) {
        return others;
    }
    inside.remove_prefix(kVersionKey.size());
    for (const char* quote : {"'", "\""}) {
        if (inside.size() >= 2 && inside.starts_with(quote) && inside.ends_with(quote)) {
            inside = inside.substr(1, inside.size() - 2);
            break;
        }
    }
    if (inside.find_first_of("'\"[]") != std::string_view::npos || trim(inside).empty()) {
        return others;
    }
    return inside;
}

/// "conda-forge::" or "conda-forge/linux-64::" is taken away.
Result<std::string_view> without_channel(std::string_view text) {
    if (const std::size_t colons = text.find("::"); colons != std::string_view::npos) {
        const std::string_view channel = text.substr(0, colons);
        if (channel.empty() || !is_made_of(channel, "._-/")) {
            return no_spec("its channel is no name");
        }
        text = text.substr(colons + 2);
    }
    if (text.find_first_of(":/\\@") != std::string_view::npos) {
        return no_spec("only packages are taken, by name: no address and no file");
    }
    return text;
}

}  // namespace

Result<MatchSpec> parse_match_spec(std::string_view text) {
    if (text.size() > kMatchSpecBytesMax) {
        return no_spec("it has more than " + std::to_string(kMatchSpecBytesMax) + " bytes");
    }
    BOOST_OUTCOME_TRY(const std::string_view spec, without_channel(trim(text)));
    const std::size_t end = std::min(spec.find_first_of(" \t=<>!~[,|"), spec.size());
    MatchSpec found{.name = std::string(spec.substr(0, end)), .versions = {}};
    if (found.name.empty() || !is_made_of(found.name, "._-")) {
        return no_spec("it does not begin with the name of a package");
    }
    for (char& c : found.name) {
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    std::string_view rest = trim(spec.substr(end));
    if (const std::size_t bracket = rest.find('['); bracket != std::string_view::npos) {
        BOOST_OUTCOME_TRY(const std::string_view inside, version_in_brackets(rest.substr(bracket)));
        if (bracket != 0) {
            return no_spec("it has two versions");
        }
        rest = inside;
    }
    if (const std::string versions = without_idle_blanks(rest); !versions.empty()) {
        BOOST_OUTCOME_TRY(found.versions, translate_versions(versions));
    }
    return found;
}

}  // namespace cellkeep::environments
