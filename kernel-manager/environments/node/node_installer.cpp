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
#include <system_error>
#include <utility>
#include <vector>

namespace cellkeep::environments {

namespace fs = std::filesystem;

namespace {

constexpr const char* kNpmFolder = "/npm";  // of its cache and settings, which nothing keeps
constexpr const char* kManifestFile = "/package.json";
constexpr const char* kLockFile = "/package-lock.json";
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

/// Nothing of a package runs, and npm makes no links: it follows what packages say of their
/// programs out of the folder.
std::vector<std::string> npm_command(
    const NodeOrder& order, const std::string& home, std::vector<std::string> what) {
    std::vector<std::string> words{order.npm};
    words.insert(words.end(), what.begin(), what.end());
    words.insert(
        words.end(),
        {"--ignore-scripts",
         "--no-bin-links",
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
         "--globalconfig=" + home + "/global"});
    return words;
}

Status make_own_folder(const std::string& path) {
    return ::mkdir(path.c_str(), S_IRWXU) == 0 ? Status(ok())
                                               : Error::from_errno(errno, "mkdir(" + path + ")");
}

Status run_npm(
    const NodeOrder& order,
    const NodeInstallation& installation,
    const std::string& home,
    std::vector<std::string> what) {
    BoundedCommand command;
    command.argv = npm_command(order, home, std::move(what));
    command.environment = npm_variables(order, home);
    command.directory = installation.scratch;
    command.runs_in = installation.directory;
    command.deadline = installation.deadline;
    command.bytes_max = installation.bytes_max;
    BOOST_OUTCOME_TRY(const CommandEnd end, with_context(run_bounded(command), "install"));
    if (!end.succeeded) {
        return Error(
            ErrorCode::kUnavailable,
            "npm cannot install these packages:\n" + std::string(trim(end.said, " \t\r\n")));
    }
    return ok();
}

/// The order's, or one that npm makes without installing anything.
Result<std::string> make_lock(
    const NodeOrder& order, const NodeInstallation& installation, const std::string& home) {
    if (order.lock) {
        return *order.lock;
    }
    BOOST_OUTCOME_TRY(run_npm(order, installation, home, {"install", "--package-lock-only"}));
    return read_file(installation.directory + kLockFile, kNodeLockBytesMax);
}

/// As npm would link them, of files that are there.
Status link_programs(
    const std::string& modules, const std::map<std::string, std::string>& programs) {
    const std::string folder = modules + "/.bin";
    if (programs.empty()) {
        return ok();
    }
    BOOST_OUTCOME_TRY(make_own_folder(folder));
    for (const auto& [name, file] : programs) {
        std::error_code error;
        const fs::path path = fs::canonical(modules + "/" + file, error);
        const bool inside = path.string().starts_with(fs::canonical(modules, error).string() + "/");
        if (error || !inside || !fs::is_regular_file(path, error)) {
            continue;  // a package says that it has a program, and has none
        }
        fs::permissions(path, fs::perms::owner_exec, fs::perm_options::add, error);
        fs::create_symlink("../" + file, folder + "/" + name, error);
        if (error) {
            return Error::from_errno(error.value(), "symlink(" + name + ")");
        }
    }
    return ok();
}

/// npm's notes name the registry, so two with the same files would be two images.
Status keep_packages_alone(const std::string& directory) {
    for (const char* name : {kInstalledList, kLockFile, kManifestFile}) {
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
    BOOST_OUTCOME_TRY(make_own_folder(directory));
    BOOST_OUTCOME_TRY(make_own_folder(home));
    BOOST_OUTCOME_TRY(write_file_atomically(
        directory + kManifestFile, node_manifest_of(order.dependencies), kOwnFile));
    BOOST_OUTCOME_TRY(const std::string text, make_lock(order, installation, home));
    BOOST_OUTCOME_TRY(
        NodeLock lock, with_context(check_node_lock(text, order.dependencies), "npm"));
    BOOST_OUTCOME_TRY(write_file_atomically(directory + kLockFile, lock.text, kOwnFile));
    BOOST_OUTCOME_TRY(run_npm(order, installation, home, {"ci"}));
    // What is installed is what was checked: a package for another system is left out.
    BOOST_OUTCOME_TRY(
        const std::string list, read_file(directory + kInstalledList, kNodeLockBytesMax));
    BOOST_OUTCOME_TRY(
        NodeLock installed, with_context(check_node_lock(list, order.dependencies), "npm"));
    BOOST_OUTCOME_TRY(link_programs(directory + kNodeModules, lock.programs));
    BOOST_OUTCOME_TRY(keep_packages_alone(directory));
    return std::move(installed.versions);
}

}  // namespace cellkeep::environments
