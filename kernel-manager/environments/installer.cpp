// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/installer.hpp"

#include "kernel-manager/environments/bounded_command.hpp"
#include "kernel-manager/environments/operator_tool.hpp"
#include "protocol/support/syscall.hpp"
#include "protocol/support/text.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>

namespace cellkeep::environments {

namespace fs = std::filesystem;

namespace {

constexpr const char* kWorkFolder = "/work";

std::string join_lines(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) {
        text += line + "\n";
    }
    return text;
}

std::vector<std::string> variables_for(const InstallOrder& order, const std::string& work) {
    std::vector<std::string> variables{
        "PATH=/usr/bin:/bin",
        "LANG=C.UTF-8",
        "HOME=" + work,
        "TMPDIR=" + work,
        "UV_PYTHON_DOWNLOADS=never"};
    if (!order.index.empty()) {
        // Not an argument: the address may hold a password, and all may read a command line.
        variables.push_back("UV_DEFAULT_INDEX=" + order.index);
    }
    const auto network = variables_of_the_network();
    variables.insert(variables.end(), network.begin(), network.end());
    return variables;
}

/// uv asks the environment's Python once, before there is a package in it.
std::vector<std::string> command_line(const InstallOrder& order, const std::string& work) {
    std::vector<std::string> words{
        order.uv,
        "pip",
        "install",
        "--no-config",
        "--no-cache",
        "--color",
        "never",
        "--no-progress",
        "--only-binary",
        ":all:",
        "--link-mode",
        "copy",
        "--no-sources",
        "--python",
        order.environment + "/bin/python",
        "--requirements",
        work + "/requirements.txt",
        "--constraints",
        work + "/constraints.txt"};
    if (!order.wheels.empty()) {
        words.insert(words.end(), {"--find-links", order.wheels});
    }
    if (order.complete) {
        words.insert(words.end(), {"--no-deps", "--require-hashes"});
    }
    return words;
}

}  // namespace

Result<std::string> find_uv() {
    return find_tool(
        {"uv",
         "CELLKEEP_UV",
         "Get it with \"pip install uv\" or from https://docs.astral.sh/uv/, and put it on PATH or "
         "set CELLKEEP_UV to its path."});
}

Status install_packages(const InstallOrder& order) {
    const std::string work = order.scratch + kWorkFolder;
    std::error_code error;
    fs::create_directory(work, error);
    if (error) {
        return Error::from_errno(error.value(), "mkdir(" + work + ")");
    }
    constexpr mode_t kOwn = S_IRUSR | S_IWUSR;
    BOOST_OUTCOME_TRY(
        write_file_atomically(work + "/requirements.txt", join_lines(order.requirements), kOwn));
    BOOST_OUTCOME_TRY(
        write_file_atomically(work + "/constraints.txt", join_lines(order.constraints), kOwn));
    BoundedCommand command;
    command.argv = command_line(order, work);
    command.environment = variables_for(order, work);
    command.directory = order.scratch;
    command.deadline = order.deadline;
    command.bytes_max = order.bytes_max;
    BOOST_OUTCOME_TRY(const CommandEnd end, with_context(run_bounded(command), "install"));
    if (!end.succeeded) {
        return Error(
            ErrorCode::kUnavailable,
            "uv cannot install these packages:\n" + std::string(trim(end.said, " \t\r\n")),
            "A package is taken as a wheel only, because nothing of it may run while it is "
            "installed, and what the kernel itself needs keeps its version. --build-sdists NAME "
            "builds the source of a package that you name, in a sandbox.");
    }
    return ok();
}

}  // namespace cellkeep::environments
