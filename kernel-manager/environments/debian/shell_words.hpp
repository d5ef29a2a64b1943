// SPDX-License-Identifier: Apache-2.0
//
// The simple commands of a shell script, as far as they can be known without a shell: words, their
// quotes taken away, and what stands in front of and behind each command. Nothing is run or
// expanded. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::environments {

/// Of a script that is looked at; a longer one is none that is understood.
inline constexpr std::size_t kScriptBytesMax = 1UL << 20U;

struct ShellWord {
    std::string text;
    /// Nothing in it depends on the shell but $NAME and ${NAME}, which are as they were, outside of
    /// single quotes.
    bool plain = true;
    bool quoted = false;  // the whole or a part of it
};

struct ShellCommand {
    std::vector<ShellWord> words;
    std::string end;  // ";" (or a new line), "&", "|", "&&", "||", "(", ")", ";;"
    /// A redirection of it writes to a file, which may be known by a variable only. Then there may
    /// be no word.
    bool writes = false;
};

/// Comments are left out, and so are the texts of here documents and what redirections name.
std::vector<ShellCommand> read_shell_commands(std::string_view script);

}  // namespace cellkeep::environments
