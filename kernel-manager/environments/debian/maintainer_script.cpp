// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/debian/maintainer_script.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace cellkeep::environments {

namespace {

using Commands = std::span<const ShellCommand>;
using Words = std::span<const ShellWord>;

constexpr std::string_view kUpdateAlternatives = "update-alternatives";
constexpr std::size_t kLoopDepthMax = 8;
/// Of a variable, which can be put together of itself.
constexpr std::size_t kScriptValueBytesMax = 4096;
/// Commands that are looked at, those of a loop each time.
constexpr std::size_t kScriptStepsMax = 100'000;

/// They stand in front of a command.
constexpr std::array<std::string_view, 10> kOpeningWords{
    "if", "elif", "then", "else", "do", "while", "until", "!", "{", "time"};
/// They end something. Behind "for" and "case" stand words, and no command.
constexpr std::array<std::string_view, 5> kClosingWords{"fi", "done", "esac", "}", "case"};

/// They change nothing, or nothing that a session would see: services, menus, caches of the loader,
/// bytecode, and the removal of what an older version has left.
constexpr std::array<std::string_view, 41> kWithoutEffect{
    "command",
    "set",
    "true",
    "false",
    ":",
    "exit",
    "echo",
    "printf",
    "shift",
    "test",
    "[",
    "return",
    "break",
    "continue",
    "which",
    "type",
    "local",
    "export",
    "unset",
    "cd",
    "rm",
    "rmdir",
    "grep",
    "dpkg",
    "dpkg-maintscript-helper",
    "update-alternatives",
    "ldconfig",
    "py3compile",
    "py3clean",
    "pycompile",
    "pypy3compile",
    "deb-systemd-helper",
    "deb-systemd-invoke",
    "systemctl",
    "systemd-tmpfiles",
    "invoke-rc.d",
    "update-rc.d",
    "update-menus",
    "update-icon-caches",
    "chmod",
    "chown"};

template <typename List>
bool is_among(const List& list, std::string_view text) {
    return std::find(list.begin(), list.end(), text) != list.end();
}

bool is_variable_name(std::string_view text) {
    constexpr std::string_view kNames =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    return !text.empty() && (text.front() < '0' || text.front() > '9') &&
           text.find_first_not_of(kNames) == std::string_view::npos;
}

class ScriptReader {
 public:
    ScriptReading read(Commands commands) {
        reading_.does_more = std::any_of(
            commands.begin(), commands.end(), [](const ShellCommand& one) { return one.writes; });
        walk(commands, 0);
        return std::move(reading_);
    }

 private:
    void walk(Commands commands, std::size_t depth);
    std::size_t walk_loop(Commands commands, Words words, std::size_t depth);
    void take_command(Words words);
    void take_alternative(Words words);
    std::optional<std::string> value_of(const ShellWord& word) const;

    std::map<std::string, std::string> variables_;
    ScriptReading reading_;
    std::size_t steps_ = 0;
    std::size_t subshells_ = 0;  // that are open
};

/// The word with what its variables are; nothing if that is not known.
std::optional<std::string> ScriptReader::value_of(const ShellWord& word) const {
    if (!word.plain) {
        return std::nullopt;
    }
    std::string value;
    std::string_view rest = word.text;
    while (true) {
        const auto begin = rest.find("${");
        const auto end = begin == std::string_view::npos ? begin : rest.find('}', begin);
        value += rest.substr(0, begin);
        if (value.size() > kScriptValueBytesMax) {
            return std::nullopt;
        }
        if (end == std::string_view::npos) {
            return value;
        }
        const auto known = variables_.find(std::string(rest.substr(begin + 2, end - begin - 2)));
        if (known == variables_.end()) {
            return std::nullopt;
        }
        value += known->second;  // bounded as this one is
        rest.remove_prefix(end + 1);
    }
}

/// "--install LINK NAME PATH PRIORITY [--slave LINK NAME PATH]…", whatever is in front of it.
void ScriptReader::take_alternative(Words words) {
    std::vector<std::string> values;
    bool installs = false;
    for (const ShellWord& word : words) {
        installs = installs || word.text == "--install";
        const auto value = value_of(word);
        if (installs && !value) {
            reading_.does_more = true;
            return;
        }
        if (installs) {
            values.push_back(*value);
        }
    }
    if (!installs) {
        return;  // it lists, removes or chooses: there is nothing to list, remove or choose from
    }
    AlternativeOffer offer;
    const auto is_path = [](const std::string& text) {
        return text.starts_with('/') && (text + "/").find("/../") == std::string::npos;
    };
    std::size_t at = 1;
    const auto take_link = [&](AlternativeLink& link) {
        if (at + 3 > values.size() || !is_path(values[at]) || !is_path(values[at + 2]) ||
            values[at + 1].find('/') != std::string::npos || values[at + 1].starts_with('.')) {
            return false;
        }
        link = {values[at], values[at + 1], values[at + 2]};
        at += 3;
        return true;
    };
    bool understood = take_link(offer.master) && at < values.size();
    if (understood) {
        const std::string& number = values[at++];
        const auto read =
            std::from_chars(number.data(), number.data() + number.size(), offer.priority);
        understood = read.ec == std::errc() && read.ptr == number.data() + number.size();
    }
    while (understood && at < values.size()) {
        understood = (values[at] == "--slave" || values[at] == "--follower") && ++at > 0 &&
                     take_link(offer.slaves.emplace_back());
    }
    if (!understood || reading_.alternatives.size() >= kScriptAlternativesMax) {
        reading_.does_more = true;
        return;
    }
    reading_.alternatives.push_back(std::move(offer));
}

/// One command without the words of the language in front of it.
void ScriptReader::take_command(Words words) {
    while (!words.empty() && is_among(kOpeningWords, words.front().text)) {
        words = words.subspan(1);
    }
    while (!words.empty()) {
        const std::string& text = words.front().text;
        const auto equals = text.find('=');
        if (equals == std::string::npos || !is_variable_name(text.substr(0, equals))) {
            break;
        }
        ShellWord value = words.front();
        value.text = text.substr(equals + 1);
        const auto known = value_of(value);
        const std::string name = text.substr(0, equals);
        if (known) {
            variables_[name] = *known;
        } else {
            variables_.erase(name);
        }
        words = words.subspan(1);
    }
    if (words.empty() || is_among(kClosingWords, words.front().text)) {
        return;
    }
    std::string_view name = words.front().text;
    name.remove_prefix(std::min(name.rfind('/') + 1, name.size()));
    if (name == kUpdateAlternatives) {
        take_alternative(words.subspan(1));
    } else if (!is_among(kWithoutEffect, name)) {
        reading_.does_more = true;
    }
}

/// "for NAME in WORD…": what is between "do" and "done" once for each. How many commands that is.
std::size_t ScriptReader::walk_loop(Commands commands, Words words, std::size_t depth) {
    std::size_t open = 1;
    std::size_t end = 1;
    for (; end < commands.size(); ++end) {
        const Words those = commands[end].words;
        for (const ShellWord& word : those) {
            if (!is_among(kOpeningWords, word.text) && word.text != "for") {
                break;
            }
            open += word.text == "for" || word.text == "while" || word.text == "until" ? 1U : 0U;
        }
        open -= !those.empty() && those.front().text == "done" ? 1U : 0U;
        if (open == 0) {
            break;
        }
    }
    steps_ += end;  // of the search
    if (depth >= kLoopDepthMax) {
        reading_.does_more = true;
        return end;
    }
    const Commands body = commands.subspan(1, end - 1);
    const std::string name = words.size() > 1 ? words[1].text : "";
    bool known = words.size() > 3 && words[2].text == "in";
    std::vector<std::string> values;
    for (std::size_t i = 3; known && i < words.size(); ++i) {
        const auto value = value_of(words[i]);
        known = value.has_value();
        values.push_back(value.value_or(""));
    }
    if (!known) {
        variables_.erase(name);
        walk(body, depth + 1);
        return end;
    }
    for (const std::string& value : values) {
        if (reading_.alternatives.size() >= kScriptAlternativesMax) {
            break;
        }
        variables_[name] = value;
        walk(body, depth + 1);
    }
    return end;
}

void ScriptReader::walk(Commands commands, std::size_t depth) {
    for (std::size_t i = 0; i < commands.size(); ++i) {
        if (++steps_ > kScriptStepsMax) {
            reading_.does_more = true;
            return;
        }
        // "configure|triggered)" of a case are no commands, and no name of a function is one.
        std::size_t last = i;
        while (last + 1 < commands.size() && commands[last].end == "|") {
            ++last;
        }
        if (commands[i].end == "(") {
            subshells_ += commands[i].words.empty() ? 1U : 0U;
            continue;
        }
        if (commands[last].end == ")" && subshells_ == 0) {
            i = last;
            continue;
        }
        subshells_ -= commands[i].end == ")" ? 1U : 0U;
        Words words = commands[i].words;
        while (!words.empty() && is_among(kOpeningWords, words.front().text)) {
            words = words.subspan(1);
        }
        if (!words.empty() && words.front().text == "for") {
            i += walk_loop(commands.subspan(i), words, depth);
        } else {
            take_command(words);
        }
    }
}

}  // namespace

ScriptReading read_maintainer_script(std::string_view text) {
    const std::string_view first = text.substr(0, text.find('\n'));
    const bool is_shell = first.starts_with("#!") &&
                          (first.ends_with("sh") || first.find("sh ") != std::string_view::npos);
    if (!is_shell || text.size() > kScriptBytesMax) {
        return {{}, true};
    }
    return ScriptReader().read(read_shell_commands(text));
}

}  // namespace cellkeep::environments
