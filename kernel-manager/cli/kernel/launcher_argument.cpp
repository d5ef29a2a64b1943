// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/kernel/launcher_argument.hpp"

#include <algorithm>
#include <array>

namespace cellkeep::cli {

namespace {

/// Flags and aliases of IPKernelApp and its bases, without the connection's, which the connection
/// file says.
constexpr std::array<std::string_view, 34> kIpykernelOptions = {
    "autocall",     "autoindent",    "automagic",     "cache-size", "color-info", "colors",
    "config",       "debug",         "ext",           "gui",        "ignore-cwd", "init",
    "ipython-dir",  "log-level",     "logappend",     "logfile",    "matplotlib", "no-autoindent",
    "no-automagic", "no-color-info", "no-ignore-cwd", "no-pdb",     "no-pprint",  "no-stderr",
    "no-stdout",    "nosep",         "parent",        "pdb",        "pprint",     "profile",
    "profile-dir",  "pylab",         "quiet",         "trio-loop"};

bool is_word_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// "Class.trait", with as many parts as there are: "Outer.Inner.trait".
bool is_trait(std::string_view name) {
    const bool of_class = !name.empty() && name.front() >= 'A' && name.front() <= 'Z';
    const bool plain = std::all_of(
        name.begin(), name.end(), [](char c) { return is_word_character(c) || c == '.'; });
    return of_class && plain && name.find('.') != std::string_view::npos &&
           name.find("..") == std::string_view::npos && name.back() != '.';
}

}  // namespace

bool is_launcher_argument(std::string_view argument) {
    if (!argument.starts_with("--")) {
        return false;
    }
    argument.remove_prefix(2);
    const std::string_view name = argument.substr(0, argument.find('='));
    return is_trait(name) || std::find(kIpykernelOptions.begin(), kIpykernelOptions.end(), name) !=
                                 kIpykernelOptions.end();
}

}  // namespace cellkeep::cli
