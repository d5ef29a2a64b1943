// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/node/node_installer.hpp"

#include "kernel-manager/environments/bounded_command.hpp"
#include "kernel-manager/environments/operator_tool.hpp"
#include "kernel-manager/environments/requirements.hpp"
#include "protocol/support/syscall.hpp"
#include "protocol/support/text.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

namespace cellkeep::environments {

namespace fs = std::filesystem;

namespace {

constexpr const char* kNpmFolder = "/npm";  // of its cache and settings, which nothing keeps
constexpr const char* kInstalledList = "/node_modules/.package-lock.json";
constexpr mode_t kOwnFile = S_IRUSR | S_IWUSR;

/// Not arguments: the registry's address may hold a password, and all may read a command line.
std::vector<std::string> npm_variables(const NodeOrder& order, const std::string& home) {
    // npm is a script that asks PATH for node, which may be beside it.
    std::vector<std::string> variables{
        "PATH=" + fs::path(order.npm).parent_path().string() + ":/usr/bin:/bin",
        "LANG=C.UTF-8",
        "HOME=" + home,
        "TMPDIR=" + home};
    if (!order.registry.empty()) {
        variables.push_back("npm_config_registry=" + order.registry);
    }
    const auto network = variables_of_the_network();
    variables.insert(variables.end(), network.begin(), network.end());
    return variables;
}

/// With a lock, exactly what it has. Its addresses are the registry's, whatever they say.
std::vector<std::string> npm_command(const NodeOrder& order, const std::string& home) {
    return {
        order.npm,
        order.lock.empty() ? "install" : "ci",
        "--ignore-scripts",
        "--omit=dev",
        "--replace-registry-host=always",
        "--git=/bin/false",  // a package may name a repository
        "--omit-lockfile-registry-resolved=false",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--loglevel=error",
        "--logs-max=0",
        "--cache=" + home + "/cache",
        "--userconfig=" + home + "/user",
        "--globalconfig=" + home + "/global"};
}

Status make_own_folder(const std::string& path) {
    return ::mkdir(path.c_str(), S_IRWXU) == 0 ? Status(ok())
                                               : Error::from_errno(errno, "mkdir(" + path + ")");
}

Status write_order(const NodeOrder& order, const std::string& directory, const std::string& home) {
    BOOST_OUTCOME_TRY(make_own_folder(directory));
    BOOST_OUTCOME_TRY(make_own_folder(home));
    BOOST_OUTCOME_TRY(write_file_atomically(
        directory + "/package.json", node_manifest_of(order.dependencies), kOwnFile));
    if (order.lock.empty()) {
        return ok();
    }
    return write_file_atomically(directory + "/package-lock.json", order.lock, kOwnFile);
}

/// npm's notes name the registry, so two with the same files would be two images.
Status keep_packages_alone(const std::string& directory) {
    for (const char* name : {kInstalledList, "/package-lock.json", "/package.json"}) {
        const std::string path = directory + name;
        if (::unlink(path.c_str()) < 0 && errno != ENOENT) {
            return Error::from_errno(errno, "unlink(" + path + ")");
        }
    }
    return ok();
}

}  // namespace

std::string shown_registry(const std::string& registry) {
    return registry.empty() ? kDefaultRegistry : shown_index(registry);
}

Result<std::string> find_npm() {
    return find_tool(
        {"npm",
         "CELLKEEP_NPM",
         "It comes with Node.js (https://nodejs.org), in Debian as the package npm. Put it on PATH "
         "or set CELLKEEP_NPM to its path."});
}

Result<std::map<std::string, std::string>> install_node_packages(
    const NodeOrder& order, const NodeInstallation& installation) {
    const std::string& directory = installation.directory;
    const std::string home = installation.scratch + kNpmFolder;
    BOOST_OUTCOME_TRY(write_order(order, directory, home));
    BoundedCommand command;
    command.argv = npm_command(order, home);
    command.environment = npm_variables(order, home);
    command.directory = installation.scratch;
    command.runs_in = directory;
    command.deadline = installation.deadline;
    command.bytes_max = installation.bytes_max;
    BOOST_OUTCOME_TRY(const CommandEnd end, with_context(run_bounded(command), "install"));
    if (!end.succeeded) {
        return Error(
            ErrorCode::kUnavailable,
            "npm cannot install these packages:\n" + std::string(trim(end.said, " \t\r\n")));
    }
    // A regular file of npm's: packages are unpacked beside it, each in a folder of its own.
    BOOST_OUTCOME_TRY(
        const std::string list, read_file(directory + kInstalledList, kNodeLockBytesMax));
    BOOST_OUTCOME_TRY(auto installed, with_context(read_installed(list), "npm"));
    BOOST_OUTCOME_TRY(keep_packages_alone(directory));
    return installed;
}

}  // namespace cellkeep::environments
