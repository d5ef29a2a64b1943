// SPDX-License-Identifier: Apache-2.0
//
// What SWE-ReX's clients ask for (swerex/runtime/abstract.py), read from JSON. Names that are not
// known are let through, and a null is a member that is not there. Pure.
#pragma once

#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::swerex {

using Time = std::optional<std::chrono::milliseconds>;

struct StartOrder {
    std::string shell;
    std::vector<std::string> sources;  // files that it reads
    Time time;
};
struct ShellOrder {
    std::string shell;
    bool interrupt = false;  // else the command
    int interrupts = 1;
    std::string command;
    Time time;
    bool interactive = false;  // to a program that goes on
    bool quits = false;        // such a program ends with it
    enum class Check { kSilent, kRaise, kIgnore } check = Check::kRaise;
    std::string error_text;
    std::vector<std::string> expected;  // texts that end it, besides the prompt
};
struct ExecuteOrder {
    std::vector<std::string> argv;
    Time time;
    bool check = false;
    std::string error_text;
    std::map<std::string, std::string> env;
    std::string directory;
};
struct ReadOrder {
    std::string path;
    bool strict = true;  // bytes that are no UTF-8 are an error
};
struct WriteOrder {
    std::string path;
    std::string content;
};

/// The field of an error about what this server does not have.
inline constexpr const char* kNotOffered = "not offered";

/// Each: kInvalidArgument names the member. kUnavailable in the field kNotOffered.
Result<StartOrder> parse_start_order(const nlohmann::json& body);
Result<ShellOrder> parse_shell_order(const nlohmann::json& body);
Result<std::string> parse_closing_order(const nlohmann::json& body);
Result<ExecuteOrder> parse_execute_order(const nlohmann::json& body);
Result<ReadOrder> parse_read_order(const nlohmann::json& body);
Result<WriteOrder> parse_write_order(const nlohmann::json& body);

}  // namespace cellkeep::swerex
