// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/error_text.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace cellkeep::session {

namespace {

struct Hint {
    std::string_view of;
    std::string_view text;
};

constexpr std::array kKindHints = {
    Hint{"syntax", "Fix the syntax at the given line; nothing of this code ran."},
    Hint{
        "exit_status",
        "The last command of the cell failed: what it said is on stderr, its code is exit_code."},
    Hint{
        "driver",
        "The language's driver broke down: variables are gone, files in /workspace are kept; run "
        "what built the state again."},
    Hint{"memory", "Work in smaller pieces, or ask for a larger memory_mb."},
    Hint{
        "oom",
        "Work in smaller pieces or ask for a larger memory_mb; variables are gone, files are "
        "kept."},
    Hint{"disk_full", "The workspace is full; remove files or ask for a larger disk_mb."},
    Hint{
        "files",
        "The code did not run: look at the path, the file's name in the inputs directory and its "
        "digest, and send it again."},
    Hint{
        "wall_timeout",
        "The time limit was reached: do less at once, or ask for a larger timeout_ms within the "
        "session's wall_ms."},
    Hint{
        "cpu_timeout",
        "The limit on CPU time was reached: do less at once, or create a session with a larger "
        "cpu_ms."},
    Hint{
        "output_limit",
        "Print less: write large results to a file in /workspace and print a summary."},
    Hint{
        "interrupt",
        "It was stopped by request, not by a fault of the code; send it again if its result is "
        "still wanted."},
    Hint{
        "dead",
        "Variables and imports are gone, files in /workspace are kept; run what built the state "
        "again."},
    Hint{"no_reply", "Restart the session and send the code again."},
};

constexpr std::array kNameHints = {
    Hint{
        "NameError",
        "The name is not defined in this session; define it first, or run the cell that does."},
    Hint{
        "UnboundLocalError",
        "The variable is used before the function gives it a value; assign it first or declare it "
        "global."},
    Hint{
        "FileNotFoundError",
        "Paths are relative to /workspace; upload the file or list the directory."},
    Hint{
        "PermissionError",
        "Only /workspace and /tmp can be written, and inputs cannot be changed; use a path there."},
    Hint{"IsADirectoryError", "The path names a directory; name a file in it."},
    Hint{"NotADirectoryError", "A part of the path is a plain file; list the directory above it."},
    Hint{"FileExistsError", "There is something of that name; remove it or use another name."},
    Hint{
        "KeyError",
        "Look at the keys or columns that exist, for example with list(d) or df.columns."},
    Hint{"IndexError", "The position is outside; look at the length with len() first."},
    Hint{
        "AttributeError",
        "The object has no such attribute; look at its type() and dir(), and check it for None."},
    Hint{
        "TypeError",
        "A value has another type than the call or the operator takes; print type() of each "
        "operand and convert it."},
    Hint{
        "ValueError",
        "The type is right and the value is not; print the value, and clean or check it first."},
    Hint{
        "UnicodeDecodeError",
        "The bytes are not text in that encoding; name the right encoding or open the file in "
        "binary."},
    Hint{"ZeroDivisionError", "The divisor is zero; check it before dividing."},
    Hint{"OverflowError", "The number is too large for its type; use smaller numbers or int."},
    Hint{
        "ImportError",
        "The module is there and the name in it is not; look at dir() of the module and its "
        "version."},
    Hint{
        "AssertionError",
        "A condition that the code asserts does not hold; print the values that it compares."},
    Hint{
        "EOFError",
        "The code asks for more input than the request gives; send it in stdin, a line for each "
        "question."},
    Hint{"RecursionError", "The function calls itself too deep; give it an end or write a loop."},
    Hint{"NotImplementedError", "What was called is not made for this case; use another call."},
    Hint{"TimeoutError", "What the code waited for did not come; wait less, or try again."},
    Hint{
        "KeyboardInterrupt",
        "The code was interrupted; send it again if its result is still wanted."},
    Hint{"SystemExit", "The code ended itself with exit(); leave that out, the session goes on."},
};

/// Of the standard library and of the commonest packages.
constexpr std::array<std::string_view, 8> kNetworkErrors = {
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectError",
    "gaierror",
    "URLError",
    "HTTPError",
    "ProxyError",
    "SSLError"};

std::string_view find_hint(std::span<const Hint> hints, std::string_view of) {
    for (const Hint& hint : hints) {
        if (hint.of == of) {
            return hint.text;
        }
    }
    return {};
}

}  // namespace

std::string strip_escapes(std::string_view text) {
    std::string plain;
    plain.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\x1b') {
            plain += text[i];
            continue;
        }
        if (i + 1 < text.size() && text[i + 1] == '[') {
            i += 2;
            while (i < text.size() && (text[i] < 0x40 || text[i] > 0x7e)) {
                ++i;
            }
        } else if (i + 1 < text.size() && text[i + 1] == ']') {
            while (i < text.size() && text[i] != '\x07') {
                ++i;
            }
        } else {
            ++i;
        }
    }
    return plain;
}

std::string hint_for(const HintFacts& facts) {
    if (const auto hint = find_hint(kKindHints, facts.kind); !hint.empty()) {
        return std::string(hint);
    }
    if (facts.name == "ModuleNotFoundError") {
        return facts.has_network
                   ? "The package is not in this environment; install it from a host that the "
                     "session may reach, or use another one."
                   : "The package is not in this environment and this session has no network; use "
                     "another one.";
    }
    if (std::find(kNetworkErrors.begin(), kNetworkErrors.end(), facts.name) !=
        kNetworkErrors.end()) {
        return facts.has_network
                   ? "Only the hosts of the session's network.allow can be reached, through its "
                     "proxy; ask for the host there or use another one."
                   : "This session has no network; upload what the code needs as files.";
    }
    if (const auto hint = find_hint(kNameHints, facts.name); !hint.empty()) {
        return std::string(hint);
    }
    if (facts.line.has_value()) {
        return "Read the traceback at line " + std::to_string(*facts.line) +
               " of the code and change what fails there.";
    }
    return "Read the message and the traceback and change the code.";
}

}  // namespace cellkeep::session
