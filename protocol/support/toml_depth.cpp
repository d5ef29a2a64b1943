// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/toml_depth.hpp"

#include <algorithm>
#include <string>

namespace cellkeep {

namespace {

class TomlScan {
 public:
    explicit TomlScan(std::string_view text) : text_(text), rest_(text) {}
    Status check();

 private:
    void skip(std::size_t characters) { rest_.remove_prefix(std::min(characters, rest_.size())); }
    void skip_string(char quote);
    void skip_lines(char quote);
    Error too_deep(const std::string& what) const;

    std::string_view text_;
    std::string_view rest_;
    std::size_t parts_ = 1;  // of the key, or what looks like one
    std::size_t nested_ = 0;
};

/// A string of several lines, behind its first three quotes. Up to two quotes may stand before the
/// last three.
void TomlScan::skip_lines(char quote) {
    const std::string three(3, quote);
    while (!rest_.empty() && !rest_.starts_with(three)) {
        skip(quote == '"' && rest_.front() == '\\' ? 2 : 1);
    }
    skip(three.size());
    for (int more = 0; more < 2 && rest_.starts_with(quote); ++more) {
        skip(1);
    }
}

void TomlScan::skip_string(char quote) {
    if (rest_.starts_with(std::string(3, quote))) {
        skip(3);
        skip_lines(quote);
        return;
    }
    skip(1);
    while (!rest_.empty() && rest_.front() != quote && rest_.front() != '\n') {
        skip(quote == '"' && rest_.front() == '\\' ? 2 : 1);
    }
    skip(rest_.starts_with(quote) ? 1 : 0);
}

Error TomlScan::too_deep(const std::string& what) const {
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(text_.size() - rest_.size());
    const auto line = 1 + std::count(text_.begin(), end, '\n');
    return {ErrorCode::kLimitExceeded, "line " + std::to_string(line) + ": " + what};
}

Status TomlScan::check() {
    while (!rest_.empty()) {
        const char one = rest_.front();
        if (one == '"' || one == '\'') {
            skip_string(one);
            continue;
        }
        if (one == '#') {
            skip(std::min(rest_.find('\n'), rest_.size()));
            continue;
        }
        skip(1);
        if (one == '.') {
            ++parts_;
        } else if (one == '[' || one == '{') {
            ++nested_;
        } else if (one == ']' || one == '}') {
            nested_ -= std::min<std::size_t>(nested_, 1);
        }
        if (std::string_view("[]{}=,\n").find(one) != std::string_view::npos) {
            parts_ = 1;
        }
        if (parts_ > kTomlKeyPartsMax) {
            return too_deep("a key has more than " + std::to_string(kTomlKeyPartsMax) + " parts");
        }
        if (nested_ > kTomlNestedMax) {
            return too_deep(
                "more than " + std::to_string(kTomlNestedMax) +
                " arrays and tables lie in each other");
        }
    }
    return ok();
}

}  // namespace

Status check_toml_depth(std::string_view text) {
    return TomlScan(text).check();
}

}  // namespace cellkeep
