// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/prompts.hpp"

#include "kernel-manager/mcp/limits.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace cellkeep::mcp {

namespace {

struct PromptArgument {
    std::string_view name;
    std::string_view description;
    bool required = false;
};

struct PromptRow {
    std::string_view name;
    std::string_view title;
    std::string_view description;
    std::array<PromptArgument, 2> arguments;
    std::string_view text;  // {name} is an argument's place
};

constexpr PromptArgument kSessionArgument{"session", "The session's name; default \"default\""};

constexpr std::array kPrompts = {
    PromptRow{
        "analyse_csv",
        "Analyse a CSV file",
        "Look at a table of the session and say what is in it",
        {PromptArgument{"path", "The file, relative to the working directory", true},
         kSessionArgument},
        "Analyse the file {path} in the Cellkeep session {session} with run_code. Load it with "
        "pandas into a variable that you keep. Report its shape, the columns with their types and "
        "missing values, what is odd in it, and the three findings that matter; show one plot. "
        "Check each number with code before you state it."},
    PromptRow{
        "explain_failure",
        "Explain a failure",
        "Find out why the last run failed, and mend it",
        {kSessionArgument, PromptArgument{"code", "The code that failed"}},
        "The last run in the Cellkeep session {session} failed. Look at its error, hint and "
        "`state`: if that is lost, the variables are gone and have to be built again. Find the "
        "cause with small runs in the same session, say it in one sentence, then run the mended "
        "code.\n\n{code}"},
};

std::string argument_or(
    const nlohmann::json& arguments, std::string_view name, std::string_view fallback) {
    const auto given = arguments.find(std::string(name));
    return given == arguments.end() ? std::string(fallback) : given->get<std::string>();
}

/// Replaces in the order of the text, so that what an argument brings is not looked into.
std::string fill_in(const PromptRow& prompt, const nlohmann::json& arguments) {
    std::string filled;
    std::string_view rest = prompt.text;
    for (std::size_t open = rest.find('{'); open != std::string_view::npos; open = rest.find('{')) {
        const std::size_t close = rest.find('}', open);
        const std::string_view name = rest.substr(open + 1, close - open - 1);
        filled += rest.substr(0, open);
        filled += argument_or(arguments, name, name == "session" ? "default" : "");
        rest.remove_prefix(close + 1);
    }
    filled += rest;
    return filled;
}

/// Why they do not fit; "" if they do.
std::string find_wrong(const PromptRow& prompt, const nlohmann::json& arguments) {
    for (const auto& [name, value] : arguments.items()) {
        const auto known = std::find_if(
            prompt.arguments.begin(), prompt.arguments.end(), [&name = name](const auto& each) {
                return each.name == name;
            });
        if (known == prompt.arguments.end()) {
            return "There is no argument of that name.";
        }
        if (!value.is_string() ||
            value.get_ref<const std::string&>().size() > kPromptArgumentBytesMax) {
            return "\"" + name + "\" must be a text of at most " +
                   std::to_string(kPromptArgumentBytesMax) + " bytes.";
        }
    }
    for (const PromptArgument& argument : prompt.arguments) {
        if (argument.required && !arguments.contains(std::string(argument.name))) {
            return "\"" + std::string(argument.name) + "\" is missing.";
        }
    }
    return {};
}

}  // namespace

nlohmann::json list_prompts() {
    nlohmann::json prompts = nlohmann::json::array();
    for (const PromptRow& prompt : kPrompts) {
        nlohmann::json arguments = nlohmann::json::array();
        for (const PromptArgument& argument : prompt.arguments) {
            arguments.push_back(
                {{"name", argument.name},
                 {"description", argument.description},
                 {"required", argument.required}});
        }
        prompts.push_back(
            {{"name", prompt.name},
             {"title", prompt.title},
             {"description", prompt.description},
             {"arguments", std::move(arguments)}});
    }
    return {{"prompts", std::move(prompts)}};
}

bool has_prompt_argument(const std::string& prompt, const std::string& argument) {
    return std::any_of(kPrompts.begin(), kPrompts.end(), [&](const PromptRow& row) {
        return row.name == prompt &&
               std::any_of(row.arguments.begin(), row.arguments.end(), [&](const auto& each) {
                   return each.name == argument;
               });
    });
}

Result<nlohmann::json> get_prompt(const std::string& name, const nlohmann::json& arguments) {
    const auto prompt = std::find_if(
        kPrompts.begin(), kPrompts.end(), [&](const auto& each) { return each.name == name; });
    if (prompt == kPrompts.end()) {
        return Error(ErrorCode::kNotFound, "There is no such prompt.");
    }
    if (!arguments.is_object()) {
        return Error(ErrorCode::kInvalidArgument, "\"arguments\" must be an object.");
    }
    if (std::string wrong = find_wrong(*prompt, arguments); !wrong.empty()) {
        return Error(ErrorCode::kInvalidArgument, std::move(wrong));
    }
    nlohmann::json message = {
        {"role", "user"}, {"content", {{"type", "text"}, {"text", fill_in(*prompt, arguments)}}}};
    return nlohmann::json{
        {"description", prompt->description},
        {"messages", nlohmann::json::array({std::move(message)})}};
}

}  // namespace cellkeep::mcp
