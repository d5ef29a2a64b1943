// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/doctor_report.hpp"

#include "protocol/message.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <vector>

namespace cellkeep::cli {

namespace {

std::string_view mode_name(sandbox::RunMode mode) {
    return mode == sandbox::RunMode::kRoot ? "root" : "rootless";
}

std::string pad(std::string text, std::size_t width) {
    text.resize(std::max(text.size(), width), ' ');
    return text;
}

}  // namespace

std::string doctor_table(const sandbox::HostFeatures& host, const Languages& languages) {
    using Row = std::array<std::string, 3>;
    std::vector<Row> rows = {{"CONTROL", "STATE", "MECHANISM"}};
    for (const sandbox::Control& control : host.controls) {
        rows.push_back({control.name, std::string(to_string(control.state)), control.mechanism});
    }
    std::array<std::size_t, 2> widths{};
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < widths.size(); ++i) {
            widths[i] = std::max(widths[i], row[i].size());
        }
    }
    std::string text = "Linux " + host.kernel_release + ", " + std::string(mode_name(host.mode)) +
                       ", cgroups " + host.cgroup_layout + ", Landlock ABI " +
                       std::to_string(host.landlock_abi) + "\n\n";
    std::size_t missing = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        text += pad(rows[i][0], widths[0]) + "  " + pad(rows[i][1], widths[1]) + "  " + rows[i][2] +
                "\n";
        if (i == 0 || host.controls[i - 1].state == sandbox::ControlState::kApplied) {
            continue;
        }
        ++missing;
        text += "    why: " + host.controls[i - 1].detail +
                "\n    fix: " + host.controls[i - 1].fix + "\n";
    }
    text += missing == 0
                ? "\nEvery control is in force on this host.\n"
                : "\n" + std::to_string(missing) +
                      " not in force. Sessions are refused unless each is accepted by name: "
                      "--allow-degraded=CONTROL\n";
    if (!languages.offered.empty()) {
        text += "\nLanguages:";
        for (const std::string& language : languages.offered) {
            text += " " + language;
        }
        text += "\n";
    }
    for (const session::NotOffered& one : languages.not_offered) {
        text += "    not offered: " + one.language + ": " + describe(one) + "\n";
    }
    return text;
}

std::string doctor_json(const sandbox::HostFeatures& host, const Languages& languages) {
    nlohmann::json not_offered = nlohmann::json::array();
    for (const session::NotOffered& one : languages.not_offered) {
        not_offered.push_back(
            {{"language", one.language}, {"reason", one.reason}, {"hint", one.hint}});
    }
    nlohmann::json controls = nlohmann::json::array();
    for (const sandbox::Control& control : host.controls) {
        controls.push_back({
            {"name", control.name},
            {"state", to_string(control.state)},
            {"mechanism", control.mechanism},
            {"detail", control.detail},
            {"fix", control.fix},
        });
    }
    const nlohmann::json report = {
        {"mode", mode_name(host.mode)},
        {"kernel_release", host.kernel_release},
        {"landlock_abi", host.landlock_abi},
        {"cgroup_layout", host.cgroup_layout},
        {"complete", sandbox::IsolationReport{host.controls}.complete()},
        {"controls", std::move(controls)},
        {"languages", {{"offered", languages.offered}, {"not_offered", std::move(not_offered)}}},
    };
    return report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace cellkeep::cli
