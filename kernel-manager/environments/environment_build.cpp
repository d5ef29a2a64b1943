// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/environment_build.hpp"

#include "kernel-manager/environments/bounded_command.hpp"
#include "kernel-manager/environments/debian/debian_installer.hpp"
#include "kernel-manager/environments/distributions.hpp"
#include "kernel-manager/environments/installer.hpp"
#include "kernel-manager/environments/interpreter_copy.hpp"
#include "kernel-manager/environments/python_program.hpp"
#include "kernel-manager/environments/python_tree.hpp"
#include "kernel-manager/environments/requirements.hpp"
#include "kernel-manager/environments/source_package.hpp"
#include "protocol/support/syscall.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

namespace cellkeep::environments {

namespace {

constexpr const char* kBuiltWheels = "/wheels";
constexpr const char* kNodeScratch = "/node";
constexpr std::size_t kFingerprintBytes = 32;
constexpr std::size_t kSaidNameBytesMax = 128;

/// The kernel runs in the environment. What it needs comes from the default one, or is installed;
/// then with pip, so that sessions can install more.
void add_kernel_packages(const PythonProgram& python, std::vector<std::string>& requirements) {
    if (python.brought) {
        requirements.insert(requirements.end(), kernel_packages().begin(), kernel_packages().end());
        requirements.emplace_back("pip");
    }
}

Result<std::vector<std::string>> kernel_constraints(
    const std::string& packages, const PythonProgram& python) {
    if (python.minor < kPythonMinorPinned) {
        return std::vector<std::string>{};
    }
    BOOST_OUTCOME_TRY(const Distributions needed, kernel_distributions(packages));
    std::vector<std::string> constraints;
    constraints.reserve(needed.size());
    for (const auto& [name, distribution] : needed) {
        constraints.push_back(name + "==" + distribution.version);
    }
    return constraints;
}

/// What does not go together in one order.
Status check_together(const EnvironmentOrder& order, const PythonProgram& python) {
    if (order.locked && (python.brought || !order.sources.empty())) {
        return Error(
            ErrorCode::kInvalidArgument,
            "--lock: a lock is of wheels, and for Debian's Python",
            "Name the packages with --requirements. No lock has what the kernel needs in another "
            "Python, or the hash of what is built.");
    }
    if (python.brought && !order.sources.empty()) {
        return Error(
            ErrorCode::kInvalidArgument,
            "--build-sdists: sources are built with Debian's Python only",
            "Leave out --python, or build a wheel and put it into an index of yours.");
    }
    return ok();
}

/// Each gives a wheel of its own name, which the installer is kept to. So no build can bring
/// another package than it was asked for.
Status build_sources(
    const EnvironmentOrder& order, const image::Progress& progress, InstallOrder& install) {
    BOOST_OUTCOME_TRY(const auto names, check_source_names(order.sources));
    if (names.empty()) {
        return ok();
    }
    install.wheels = install.scratch + kBuiltWheels;
    if (::mkdir(install.wheels.c_str(), S_IRWXU) < 0) {
        return Error::from_errno(errno, "mkdir(" + install.wheels + ")");
    }
    for (const std::string& name : names) {
        progress("building " + name + " from its source, in a sandbox");
        const SourceOrder source{
            name,
            lines_about(install.requirements, name),
            order.index,
            install.wheels,
            install.deadline,
            install.bytes_max};
        BOOST_OUTCOME_TRY(
            const std::string file,
            with_context(order.build_source(source), "build " + name + " from its source"));
        BOOST_OUTCOME_TRY(std::string pin, pin_built(file, name));
        install.constraints.push_back(std::move(pin));
        for (std::string& line : install.requirements) {
            line = name_in(line) == name ? without_hashes(line) : line;
        }
    }
    return ok();
}

/// Of what was installed. An operator who lets code run wants to know that nothing needed it. What
/// was asked for long ago may need it no more.
Status note_built(const EnvironmentOrder& order, NamedRecord& record) {
    BOOST_OUTCOME_TRY(record.built, check_source_names(order.sources));
    const auto is_missing = [&record](const std::string& name) {
        return !record.packages.contains(name);
    };
    if (!order.replaces.empty()) {
        std::erase_if(record.built, is_missing);
        return ok();
    }
    const auto missing = std::find_if(record.built.begin(), record.built.end(), is_missing);
    if (missing != record.built.end()) {
        return Error(
            ErrorCode::kInvalidArgument,
            "--build-sdists: " + *missing + " was built, and none of the requirements needs it");
    }
    return ok();
}

/// What a package says of itself is shown, and exported as a requirement.
Status check_said(const std::string& name, const std::string& version) {
    static constexpr std::string_view kTaken =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+!";
    for (const std::string& text : {name, version}) {
        if (text.empty() || text.size() > kSaidNameBytesMax || text.front() == '-' ||
            text.find_first_not_of(kTaken) != std::string::npos) {
            return Error(
                ErrorCode::kProtocol, "a package says of itself what is no name or version");
        }
    }
    return ok();
}

Result<NamedRecord> record_of(
    const EnvironmentOrder& order,
    const std::vector<std::string>& requirements,
    const PythonProgram& python,
    const std::string& tree) {
    NamedRecord record;
    record.name = order.name;
    record.python = python.version;
    record.index = shown_index(order.index);
    record.requirements = requirements;
    record.locked = order.locked;
    record.asked_python = order.python;
    BOOST_OUTCOME_TRY(const Distributions installed, find_distributions(packages_of(tree, python)));
    for (const auto& [name, distribution] : installed) {
        BOOST_OUTCOME_TRY(check_said(name, distribution.version));
        record.packages.emplace(name, distribution.version);
    }
    BOOST_OUTCOME_TRY(note_built(order, record));
    return record;
}

/// The packages of Node.js, in a folder beside the environment: nothing of theirs is compiled with
/// Python's. The bytes that are left for the environment.
Result<std::uint64_t> install_node(
    const EnvironmentOrder& order,
    const InstallOrder& install,
    std::uint64_t bytes_max,
    const image::Progress& progress,
    NodeRecord& record) {
    if (order.node.dependencies.empty()) {
        return bytes_max;
    }
    record.wanted = order.node.dependencies;
    record.registry = shown_registry(order.node.registry);
    record.locked = order.node.lock.has_value();
    progress("installing packages of Node.js from " + record.registry);
    const std::string folder = install.scratch + kNodeScratch;
    BOOST_OUTCOME_TRY(
        record.packages,
        install_node_packages(
            order.node, {folder, install.scratch, install.deadline, install.bytes_max}));
    const std::uint64_t bytes = bytes_beneath(folder);
    if (bytes > bytes_max) {
        return Error(
            ErrorCode::kLimitExceeded,
            "it would have more than " + std::to_string(bytes_max >> 20U) + " MiB");
    }
    return bytes_max - bytes;
}

/// The packages of Debian, likewise beside the environment. The bytes that are left for it.
Result<std::uint64_t> install_debian(
    const EnvironmentOrder& order,
    const InstallOrder& install,
    std::uint64_t bytes_max,
    const image::Progress& progress,
    DebianRecord& record) {
    if (order.debian.packages.empty()) {
        return bytes_max;
    }
    const std::string folder = install.scratch + kSystemFolder;
    BOOST_OUTCOME_TRY(
        record,
        install_debian_packages(
            order.debian,
            {folder, install.scratch, install.deadline, install.bytes_max, bytes_max},
            progress));
    const std::uint64_t bytes = bytes_beneath(folder);
    return bytes_max - std::min(bytes, bytes_max);
}

Result<image::Recipe> recipe_of(
    const PythonProgram& python, const std::string& scratch, const NamedRecord& record) {
    image::Recipe recipe;
    recipe.kind = image::Kind::kEnvironment;
    // Of its own each time: what the index has for the same requirements is another thing tomorrow.
    BOOST_OUTCOME_TRY(recipe.fingerprint, random_hex(kFingerprintBytes));
    const auto copy = [&](const char* folder) {
        recipe.copies.push_back(
            {image::Copy::How::kTree, scratch + folder, std::string(folder).substr(1)});
    };
    copy(kImageFolder);
    if (python.brought) {
        copy(kInterpreterFolder);
    }
    if (!record.debian.packages.empty()) {
        copy(kSystemFolder);
    }
    return recipe;
}

}  // namespace

Result<BuiltEnvironment> build_environment(
    const EnvironmentOrder& order,
    const std::vector<std::string>& requirements,
    const EnvironmentBounds& bounds,
    const std::string& scratch,
    const image::Progress& progress) {
    const std::string tree = scratch + kImageFolder;
    const std::string interpreter = scratch + kInterpreterFolder;
    const auto deadline = std::chrono::steady_clock::now() + bounds.time;
    BOOST_OUTCOME_TRY(
        const PythonProgram python,
        with_context(find_python(order.python, order.folders, scratch), "--python"));
    BOOST_OUTCOME_TRY(check_together(order, python));
    if (python.brought) {
        progress("copying " + python.program + ", CPython " + python.version);
        BOOST_OUTCOME_TRY(copy_interpreter(python, interpreter, bounds.bytes));
    }
    BOOST_OUTCOME_TRY(make_empty_environment(tree, python));
    InstallOrder install{order.uv, tree, scratch, order.index, requirements, {}, deadline, 0};
    add_kernel_packages(python, install.requirements);
    install.bytes_max = bounds.bytes * kBuildBytesFactor;
    install.complete = order.locked;
    BOOST_OUTCOME_TRY(install.constraints, kernel_constraints(order.default_packages, python));
    BOOST_OUTCOME_TRY(build_sources(order, progress, install));
    if (!install.requirements.empty()) {
        progress("installing packages from " + shown_index(order.index));
        BOOST_OUTCOME_TRY(install_packages(install));
    }
    DebianRecord debian;
    BOOST_OUTCOME_TRY(
        const std::uint64_t beside_debian,
        install_debian(order, install, bounds.bytes, progress, debian));
    NodeRecord node;
    BOOST_OUTCOME_TRY(
        const std::uint64_t bytes, install_node(order, install, beside_debian, progress, node));
    progress("making the environment of them");
    BOOST_OUTCOME_TRY(
        finish_environment({tree, interpreter, deadline, bytes, order.kernel_package}, python));
    if (!node.wanted.empty()) {
        BOOST_OUTCOME_TRY(add_to_environment(tree, scratch + kNodeScratch, kNodeFolder));
    }
    BOOST_OUTCOME_TRY(NamedRecord record, record_of(order, requirements, python, tree));
    record.node = std::move(node);
    record.debian = std::move(debian);
    BOOST_OUTCOME_TRY(image::Recipe recipe, recipe_of(python, scratch, record));
    return BuiltEnvironment{std::move(record), std::move(recipe)};
}

}  // namespace cellkeep::environments
