// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/python_tree.hpp"

#include "kernel-manager/environments/bounded_command.hpp"
#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace cellkeep::environments {

namespace fs = std::filesystem;

namespace {

constexpr const char* kConfiguration =
    "home = /usr/bin\n"
    "implementation = CPython\n"
    "version_info = " CELLKEEP_PYTHON_VERSION
    ".0\n"
    "include-system-site-packages = false\n"
    "relocatable = true\n";
constexpr const char* kLibrary = "/lib/python" CELLKEEP_PYTHON_VERSION "/site-packages";
/// Inside a session (languages/kernel_catalog.cpp).
constexpr const char* kDefaultInside = "/opt/cellkeep/environment";
constexpr const char* kInstallerLock = "/.lock";  // uv leaves it
constexpr const char* kFontCache = "/share/cellkeep/matplotlib";
/// Python appends the folder that it names to sys.path (its module site).
constexpr const char* kPathFile = "/cellkeep-default.pth";
/// 1980-01-01, the first day of a zip file's dates.
constexpr timespec kDate{315'532'800, 0};
constexpr mode_t kReadableFile = S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH;
constexpr mode_t kExecutable = S_IXUSR | S_IXGRP | S_IXOTH;

Status make_folders(const std::string& path) {
    std::error_code error;
    fs::create_directories(path, error);
    return error ? Error::from_errno(error.value(), "mkdir(" + path + ")") : Status(ok());
}

/// In the place of what a package may have put there.
Status make_link(const std::string& target, const std::string& path) {
    std::error_code error;
    fs::remove_all(path, error);
    if (!error) {
        fs::create_symlink(target, path, error);
    }
    return error ? Error::from_errno(error.value(), "symlink(" + path + ")") : Status(ok());
}

Status show_default(const std::string& directory) {
    const std::string inside = kDefaultInside;
    (void)::unlink((directory + kInstallerLock).c_str());  // Ignored: there may be none.
    BOOST_OUTCOME_TRY(write_file_atomically(
        packages_of(directory) + kPathFile, inside + kLibrary + "\n", kReadableFile));
    BOOST_OUTCOME_TRY(make_folders(fs::path(directory + kFontCache).parent_path().string()));
    return make_link(inside + kFontCache, directory + kFontCache);
}

/// By an interpreter that looks at no package: sources are parsed, and nothing of them runs. What
/// cannot be compiled has no bytecode, as in every environment.
Status compile_sources(
    const std::string& directory,
    std::chrono::steady_clock::time_point deadline,
    std::uint64_t bytes_max) {
    BoundedCommand command;
    command.argv = {kPythonProgram, "-I", "-S", "-B", "-m", "compileall", "-q"};
    // Bytecode that no date is part of, and no place.
    for (const char* word : {"--invalidation-mode", "unchecked-hash", "-s"}) {
        command.argv.emplace_back(word);
    }
    command.argv.insert(command.argv.end(), {directory, "-p", "/environment", "lib"});
    command.environment = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "PYTHONHASHSEED=0"};
    command.directory = directory;
    command.deadline = deadline;
    command.bytes_max = bytes_max;
    BOOST_OUTCOME_TRY(with_context(run_bounded(command), "compile the packages"));
    return ok();
}

/// An image takes only what all may read (image/tree_writer.hpp).
Status settle(const std::string& path) {
    struct stat info {};
    if (::lstat(path.c_str(), &info) < 0) {
        return Error::from_errno(errno, "stat(" + path + ")");
    }
    if (S_ISLNK(info.st_mode)) {
        return ok();
    }
    const bool runs = S_ISDIR(info.st_mode) || (info.st_mode & S_IXUSR) != 0;
    const timespec times[2] = {kDate, kDate};
    if (::chmod(path.c_str(), kReadableFile | (runs ? kExecutable : 0U)) < 0 ||
        ::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) < 0) {
        return Error::from_errno(errno, "chmod(" + path + ")");
    }
    return ok();
}

Status settle_all(const std::string& directory) {
    BOOST_OUTCOME_TRY(settle(directory));
    std::error_code error;
    fs::recursive_directory_iterator at(directory, error);
    for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
        BOOST_OUTCOME_TRY(settle(at->path().string()));
    }
    return error ? Error::from_errno(error.value(), "readdir(" + directory + ")") : Status(ok());
}

}  // namespace

Status check_python(std::string_view wanted) {
    if (wanted == kPythonVersion || wanted == kPythonProgram) {
        return ok();
    }
    return Error(
        ErrorCode::kInvalidArgument,
        "environments are of Debian's Python " + std::string(kPythonVersion) +
            " only, and of no other yet");
}

std::string packages_of(const std::string& environment) {
    return environment + kLibrary;
}

Status make_empty_environment(const std::string& directory) {
    BOOST_OUTCOME_TRY(make_folders(packages_of(directory)));
    BOOST_OUTCOME_TRY(make_folders(directory + "/bin"));
    BOOST_OUTCOME_TRY(make_link(kPythonProgram, directory + "/bin/python"));
    BOOST_OUTCOME_TRY(make_link("python", directory + "/bin/python3"));
    BOOST_OUTCOME_TRY(make_link("python", directory + "/bin/python" + kPythonVersion));
    return write_file_atomically(directory + "/pyvenv.cfg", kConfiguration, kReadableFile);
}

Status finish_environment(
    const std::string& directory,
    std::chrono::steady_clock::time_point deadline,
    std::uint64_t bytes_max) {
    BOOST_OUTCOME_TRY(show_default(directory));
    BOOST_OUTCOME_TRY(compile_sources(directory, deadline, bytes_max));
    if (bytes_beneath(directory) > bytes_max) {
        return Error(
            ErrorCode::kLimitExceeded,
            "it would have more than " + std::to_string(bytes_max >> 20U) + " MiB");
    }
    return settle_all(directory);
}

}  // namespace cellkeep::environments
