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

/// Inside a session (languages/kernel_catalog.cpp).
constexpr const char* kDefaultInside = "/opt/cellkeep/environment";
constexpr const char* kInstallerLock = "/.lock";  // uv leaves it
constexpr const char* kFontCache = "/share/cellkeep/matplotlib";
/// As sys.pycache_prefix lays it out (kernels/python/cellkeep_kernel/hosted.py).
constexpr const char* kKernelBytecode = "/share/cellkeep/bytecode";
constexpr const char* kKernelModules = "/cellkeep_kernel";
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

std::string library_of(const PythonProgram& python) {
    return "/lib/" + python.name() + "/site-packages";
}

/// What makes a folder a virtual environment of the program, wherever that is.
Status name_python(
    const std::string& directory, const PythonProgram& python, const fs::path& program) {
    BOOST_OUTCOME_TRY(make_link(program.string(), directory + "/bin/python"));
    BOOST_OUTCOME_TRY(make_link("python", directory + "/bin/python3"));
    BOOST_OUTCOME_TRY(make_link("python", directory + "/bin/" + python.name()));
    const std::string version = python.brought ? python.version : python.version + ".0";
    return write_file_atomically(
        directory + "/pyvenv.cfg",
        "home = " + program.parent_path().string() +
            "\n"
            "implementation = CPython\n"
            "version_info = " +
            version +
            "\n"
            "include-system-site-packages = false\n"
            "relocatable = true\n",
        kReadableFile);
}

/// A Python that the environment brings is at its place inside from now on.
Status move_inside(const std::string& directory, const PythonProgram& python) {
    return name_python(directory, python, fs::path(kInterpreterInside) / "bin" / python.name());
}

/// Other versions of packages for other versions of Python may be there than in the default one,
/// but fonts are fonts.
Status show_default(const std::string& directory, const PythonProgram& python) {
    const std::string inside = kDefaultInside;
    if (!python.brought) {
        BOOST_OUTCOME_TRY(write_file_atomically(
            packages_of(directory) + kPathFile, inside + library_of(python) + "\n", kReadableFile));
    }
    BOOST_OUTCOME_TRY(make_folders(fs::path(directory + kFontCache).parent_path().string()));
    return make_link(inside + kFontCache, directory + kFontCache);
}

/// By an interpreter that looks at no package: sources are parsed, and nothing of them runs. What
/// cannot be compiled has no bytecode, as in every environment.
Status compile_sources(
    const std::string& directory,
    const std::string& image_folder,
    const PythonProgram& python,
    const FinishOrder& order) {
    BoundedCommand command;
    command.argv = {python.program, "-I", "-S", "-B", "-m", "compileall", "-q"};
    // Bytecode that no date is part of, and no place.
    for (const char* word : {"--invalidation-mode", "unchecked-hash", "-s"}) {
        command.argv.emplace_back(word);
    }
    command.argv.insert(command.argv.end(), {directory, "-p", image_folder, "lib"});
    command.environment = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "PYTHONHASHSEED=0"};
    command.directory = directory;
    command.deadline = order.deadline;
    command.bytes_max = order.bytes_max;
    BOOST_OUTCOME_TRY(with_context(run_bounded(command), "compile the sources"));
    return ok();
}

/// The kernel's own modules are the installation's, which has bytecode for Debian's Python alone.
/// Each has the hash of its source, because an upgrade of Cellkeep may change that.
Status compile_kernel(const PythonProgram& python, const FinishOrder& order) {
    const std::string prefix = order.directory + kKernelBytecode;
    BoundedCommand command;
    command.argv = {python.program, "-I", "-S", "-B", "-X", "pycache_prefix=" + prefix};
    for (const char* word : {"-m", "compileall", "-q", "--invalidation-mode", "checked-hash"}) {
        command.argv.emplace_back(word);
    }
    command.argv.insert(
        command.argv.end(),
        {"-s",
         order.kernel_package,
         "-p",
         kKernelPackageInside,
         order.kernel_package + kKernelModules});
    command.environment = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "PYTHONHASHSEED=0"};
    command.directory = order.directory;
    command.deadline = order.deadline;
    command.bytes_max = order.bytes_max;
    BOOST_OUTCOME_TRY(with_context(run_bounded(command), "compile the kernel"));
    const std::string made = prefix + order.kernel_package + kKernelModules;
    const std::string wanted = prefix + kKernelPackageInside + kKernelModules;
    BOOST_OUTCOME_TRY(make_folders(fs::path(wanted).parent_path().string()));
    std::error_code error;
    if (made != wanted && fs::exists(made, error)) {
        fs::rename(made, wanted, error);
        // What is left are the empty folders of the place where the installation is.
        for (fs::path empty = fs::path(made).parent_path(); !error && fs::is_empty(empty, error);
             empty = empty.parent_path()) {
            fs::remove(empty, error);
        }
    }
    return error ? Error::from_errno(error.value(), "rename(" + made + ")") : Status(ok());
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

std::string packages_of(const std::string& environment, const PythonProgram& python) {
    return environment + library_of(python);
}

Status make_empty_environment(const std::string& directory, const PythonProgram& python) {
    BOOST_OUTCOME_TRY(make_folders(packages_of(directory, python)));
    BOOST_OUTCOME_TRY(make_folders(directory + "/bin"));
    return name_python(directory, python, python.program);
}

Status finish_environment(const FinishOrder& order, const PythonProgram& python) {
    const std::string& directory = order.directory;
    (void)::unlink((directory + kInstallerLock).c_str());  // Ignored: there may be none.
    BOOST_OUTCOME_TRY(show_default(directory, python));
    BOOST_OUTCOME_TRY(compile_sources(directory, "/environment", python, order));
    if (python.brought && !order.kernel_package.empty()) {
        BOOST_OUTCOME_TRY(compile_kernel(python, order));
    }
    std::uint64_t bytes = bytes_beneath(directory);
    if (python.brought) {
        BOOST_OUTCOME_TRY(compile_sources(order.interpreter, "/interpreter", python, order));
        BOOST_OUTCOME_TRY(move_inside(directory, python));
        BOOST_OUTCOME_TRY(settle_all(order.interpreter));
        bytes += bytes_beneath(order.interpreter);
    }
    if (bytes > order.bytes_max) {
        return Error(
            ErrorCode::kLimitExceeded,
            "it would have more than " + std::to_string(order.bytes_max >> 20U) + " MiB");
    }
    return settle_all(directory);
}

Status add_to_environment(
    const std::string& directory, const std::string& folder, const std::string& name) {
    const std::string place = directory + name;
    if (::rename(folder.c_str(), place.c_str()) < 0) {
        return Error::from_errno(errno, "rename(" + folder + ")");
    }
    BOOST_OUTCOME_TRY(settle_all(place));
    return settle(directory);  // it has another date now
}

}  // namespace cellkeep::environments
