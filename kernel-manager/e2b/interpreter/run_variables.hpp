// SPDX-License-Identifier: Apache-2.0
//
// Environment variables of one execution: code that sets them before it and code that puts back
// what was there. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::e2b {

struct VariablesCode {
    std::string before;
    std::string after;
};
/// nullopt: code of this language cannot be given variables.
std::optional<VariablesCode> set_variables(
    std::string_view language, const std::map<std::string, std::string>& variables);
/// Code that changes to a directory and makes it first; nullopt as above.
std::optional<std::string> change_directory(std::string_view language, const std::string& path);

}  // namespace cellkeep::e2b
