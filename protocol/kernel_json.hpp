// SPDX-License-Identifier: Apache-2.0
//
// kernel.json: what a folder says about the language in it (kernels/driver/README.md). The server
// reads it to know what to mount, the kernel to know what to start. Pure functions.
#pragma once

#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::protocol {

/// The file's text.
inline constexpr std::size_t kKernelJsonBytesMax = 64UL << 10U;
/// A language's name: also a folder, a kernel's name and a part of URLs.
inline constexpr std::size_t kLanguageBytesMax = 32;

inline constexpr std::string_view kKernelJsonName = "kernel.json";

enum class InterruptBy { kSignal, kMessage };

struct KernelJson {
    std::string language;
    std::string display_name;
    std::vector<std::string> argv;           // with placeholders
    std::map<std::string, std::string> env;  // with placeholders in the values
    nlohmann::json language_info = nlohmann::json::object();
    InterruptBy interrupt = InterruptBy::kSignal;
    std::vector<std::string> messages;            // types that the driver answers itself
    std::map<std::string, std::string> programs;  // name -> a program on PATH, or its path
    std::string packages;                         // "" or a name under environments/
    std::vector<std::string> shares;              // languages whose folders it uses too
    std::vector<std::string> required_files;      // "requires"
    std::vector<std::string> system_packages;
    nlohmann::json help_links = nlohmann::json::array();
};

/// kInvalidArgument names the field: "argv: …". kProtocol: no JSON object.
Result<KernelJson> parse_kernel_json(std::string_view text);

/// Letters, digits, "_", "+" and "-", a letter first; lower case.
bool is_language_name(std::string_view name);

/// "{folder}/driver.py" with its placeholders replaced. kInvalidArgument names one that has no
/// value. "{{" stands for a brace.
Result<std::string> expand_placeholders(
    std::string_view text, const std::map<std::string, std::string>& values);

}  // namespace cellkeep::protocol
