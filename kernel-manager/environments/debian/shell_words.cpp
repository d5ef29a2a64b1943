// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/debian/shell_words.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace cellkeep::environments {

namespace {

constexpr std::string_view kShellOperators = ";&|()<>\n";
constexpr std::string_view kShellPatterns = "*?[~";
constexpr std::string_view kDescriptorDigits = "0123456789";
/// What may stand behind ">&" for another descriptor, and for none.
constexpr std::string_view kCopiedDescriptor = "0123456789-";
/// Who writes there changes no file.
constexpr std::array<std::string_view, 4> kNoFiles{
    "/dev/null", "/dev/stderr", "/dev/stdout", "/dev/tty"};

class ShellScan {
 public:
    explicit ShellScan(std::string_view script) : rest_(script) {}
    std::vector<ShellCommand> read_commands();

 private:
    bool take(std::string_view text) {
        if (!rest_.starts_with(text)) {
            return false;
        }
        rest_.remove_prefix(text.size());
        return true;
    }
    char take_one() {
        const char one = rest_.front();
        rest_.remove_prefix(1);
        return one;
    }
    void read_word();
    void read_double_quotes(ShellWord& word);
    bool read_special(char one, ShellWord& word);
    void read_dollar(ShellWord& word);
    void skip_nested(char open, char close);
    void skip_to(char end);
    enum class Redirection { kIn, kHere, kOut };
    void skip_redirection(Redirection kind);
    void skip_here_documents();
    void end_command(const std::string& how);

    std::string_view rest_;
    std::vector<ShellCommand> commands_;
    ShellCommand command_;
    std::vector<std::string> here_ends_;
};

void ShellScan::skip_to(char end) {
    const auto found = rest_.find(end);
    rest_.remove_prefix(found == std::string_view::npos ? rest_.size() : found + 1);
}

/// Behind the end of what has been opened.
void ShellScan::skip_nested(char open, char close) {
    for (std::size_t depth = 1; depth > 0 && !rest_.empty();) {
        const char one = take_one();
        if (one == '\\' && !rest_.empty()) {
            rest_.remove_prefix(1);
        } else if (one == '\'' && open == '(') {
            skip_to('\'');
        } else if (one == open) {
            ++depth;
        } else if (one == close) {
            --depth;
        }
    }
}

/// "$NAME" and "${NAME}" are kept; all else depends on the shell.
void ShellScan::read_dollar(ShellWord& word) {
    constexpr std::string_view kVariableNames =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    if (take("(")) {
        word.plain = false;
        skip_nested('(', ')');
        return;
    }
    const bool braced = take("{");
    const auto length = std::min(rest_.find_first_not_of(kVariableNames), rest_.size());
    const std::string name(rest_.substr(0, length));
    rest_.remove_prefix(length);
    if (braced && !take("}")) {
        word.plain = false;
        skip_nested('{', '}');
        return;
    }
    word.plain = word.plain && !name.empty();
    word.text += "${" + name + "}";
}

/// Behind a character that means something in double quotes, too. False: this one does not.
bool ShellScan::read_special(char one, ShellWord& word) {
    if (one == '\\' && !rest_.empty()) {
        const char next = take_one();
        if (next != '\n') {
            word.text += next;
        }
    } else if (one == '$') {
        read_dollar(word);
    } else if (one == '`') {
        word.plain = false;
        skip_to('`');
    } else {
        return false;
    }
    return true;
}

void ShellScan::read_double_quotes(ShellWord& word) {
    while (!rest_.empty()) {
        const char one = take_one();
        if (one == '"') {
            return;
        }
        if (!read_special(one, word)) {
            word.text += one;
        }
    }
}

void ShellScan::read_word() {
    ShellWord word;
    while (!rest_.empty()) {
        const char one = rest_.front();
        if (one == ' ' || one == '\t' || kShellOperators.find(one) != std::string_view::npos) {
            break;
        }
        rest_.remove_prefix(1);
        if (one == '\'') {
            word.quoted = true;
            const auto end = std::min(rest_.find('\''), rest_.size());
            // A "$" in it means itself: there are none in names of files.
            word.plain = word.plain && rest_.substr(0, end).find('$') == std::string_view::npos;
            word.text += rest_.substr(0, end);
            skip_to('\'');
        } else if (one == '"') {
            word.quoted = true;
            read_double_quotes(word);
        } else if (!read_special(one, word)) {
            word.plain = word.plain && kShellPatterns.find(one) == std::string_view::npos;
            word.text += one;
        }
    }
    command_.words.push_back(std::move(word));
}

/// Behind "<", "<<" or ">": what it names is no word of the command.
void ShellScan::skip_redirection(Redirection kind) {
    const bool to_file = take(">") || kind == Redirection::kOut;  // ">>" and "<>", too
    const bool is_copy = take("&");                               // ">&2", ">&-"
    // Ignored: "<<-" and ">|" mean the same here.
    (void)take(kind == Redirection::kHere ? "-" : "|");
    while (take(" ") || take("\t")) {
    }
    if (!command_.words.empty() && command_.words.back().text.size() == 1 &&
        kDescriptorDigits.find(command_.words.back().text) != std::string_view::npos) {
        command_.words.pop_back();  // of "2>file"
    }
    const std::size_t words = command_.words.size();
    read_word();
    const std::string name = command_.words.back().text;
    command_.words.resize(words);
    if (kind == Redirection::kHere) {
        here_ends_.push_back(name);
    }
    const bool is_descriptor =
        is_copy && name.find_first_not_of(kCopiedDescriptor) == std::string::npos;
    if (to_file && !is_descriptor &&
        std::find(kNoFiles.begin(), kNoFiles.end(), name) == kNoFiles.end()) {
        command_.writes = true;
    }
}

void ShellScan::skip_here_documents() {
    for (const std::string& end : std::exchange(here_ends_, {})) {
        while (!rest_.empty()) {
            std::string_view line = rest_.substr(0, rest_.find('\n'));
            skip_to('\n');
            line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
            if (line == end) {
                break;
            }
        }
    }
}

void ShellScan::end_command(const std::string& how) {
    // An empty one with ";" says nothing.
    if (!command_.words.empty() || command_.writes || (how != ";" && how != "&")) {
        command_.end = how;
        commands_.push_back(std::exchange(command_, {}));
    }
}

std::vector<ShellCommand> ShellScan::read_commands() {
    while (!rest_.empty()) {
        if (take(" ") || take("\t") || take("\\\n")) {
            continue;
        }
        if (rest_.front() == '#') {
            const auto end = rest_.find('\n');
            rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end);
        } else if (take("\n")) {
            end_command(";");
            skip_here_documents();
        } else if (take("<<")) {
            skip_redirection(Redirection::kHere);
        } else if (take("<")) {
            skip_redirection(Redirection::kIn);
        } else if (take(">")) {
            skip_redirection(Redirection::kOut);
        } else {
            bool found = false;
            for (const char* how : {";;", "&&", "||", ";", "&", "|", "(", ")"}) {
                if (take(how)) {
                    end_command(how);
                    found = true;
                    break;
                }
            }
            if (!found) {
                read_word();
            }
        }
    }
    end_command(";");
    return std::move(commands_);
}

}  // namespace

std::vector<ShellCommand> read_shell_commands(std::string_view script) {
    return ShellScan(script).read_commands();
}

}  // namespace cellkeep::environments
