// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/swerex/passed_shells.hpp"

#include "kernel-manager/swerex/limits.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace cellkeep::swerex {

using nlohmann::json;

namespace {

Error wrong(const char* what) {
    return {ErrorCode::kProtocol, std::string("passed shells: ") + what};
}

PassedShell read_shell(const json& text) {
    return {
        text.at("command").get<std::string>(),
        text.at("prompt").get<std::string>(),
        text.at("place").get<std::uint64_t>(),
        text.at("said").get<std::string>(),
        text.at("left_out").get<std::uint64_t>()};
}

/// Of a shell that there may be; nullptr: it may.
const char* find_fault(const std::string& name, const PassedShell& shell) {
    if (name.empty() || name.size() > kNameBytesMax) {
        return "a name's length";
    }
    // A prompt is looked for in what the guest says, so it must be ours.
    const std::string_view prompt = shell.prompt;
    const bool ours = prompt.starts_with(kPromptBegin) &&
                      prompt.size() == kPromptBegin.size() + 2 * kPromptSecretBytes &&
                      prompt.substr(kPromptBegin.size()).find_first_not_of("0123456789abcdef") ==
                          std::string_view::npos;
    if (!ours) {
        return "a prompt";
    }
    return shell.said.size() > kOutputBytesMax ? "too much output" : nullptr;
}

}  // namespace

json write_shells(const PassedShells& shells) {
    json all = json::object();
    for (const auto& [session, named] : shells) {
        for (const auto& [name, shell] : named) {
            all[session][name] = {
                {"command", shell.command},
                {"prompt", shell.prompt},
                {"place", shell.place},
                {"said", shell.said},
                {"left_out", shell.left_out}};
        }
    }
    return all;
}

Result<PassedShells> read_shells(const json& text) {
    PassedShells shells;
    std::set<std::string> commands;
    try {
        for (const auto& [session, named] : text.items()) {
            if (named.size() > kShellsMax) {
                return wrong("too many");
            }
            for (const auto& [name, one] : named.items()) {
                PassedShell shell = read_shell(one);
                if (const char* const fault = find_fault(name, shell)) {
                    return wrong(fault);
                }
                if (!commands.insert(shell.command).second) {
                    return wrong("two of one command");
                }
                shells[session].emplace(name, std::move(shell));
            }
        }
    } catch (const json::exception& failure) {
        return wrong(failure.what());
    }
    return shells;
}

}  // namespace cellkeep::swerex
