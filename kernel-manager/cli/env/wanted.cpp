// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/env/wanted.hpp"

#include "kernel-manager/environments/conda/conda_file.hpp"
#include "kernel-manager/environments/debian/debian_installer.hpp"
#include "kernel-manager/environments/lock_file.hpp"
#include "kernel-manager/environments/project_file.hpp"
#include "kernel-manager/environments/requirements.hpp"
#include "protocol/support/syscall.hpp"

#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

namespace cellkeep::cli {

namespace {

namespace fs = std::filesystem;

/// One byte more shows that it is too long.
Result<std::string> read_whole(const std::string& path, std::size_t bytes_max) {
    return read_file(path, bytes_max + 1);
}

Status read_conda(const std::string& path, Wanted& wanted) {
    BOOST_OUTCOME_TRY(
        const std::string text,
        with_context(read_whole(path, environments::kCondaFileBytesMax), "--conda"));
    BOOST_OUTCOME_TRY(
        auto file, with_context(environments::read_conda_file(text), "--conda " + path));
    wanted.requirements = std::move(file.requirements);
    wanted.python = std::move(file.python);
    return ok();
}

Result<std::string> read_lock(const std::string& path) {
    BOOST_OUTCOME_TRY(
        const std::string text,
        with_context(read_whole(path, environments::kLockFileBytesMax), "--lock"));
    return with_context(environments::requirements_of_lock(text), "--lock " + path);
}

Result<std::string> read_project(const EnvCreate& command) {
    const std::string path = command.project + "/pyproject.toml";
    BOOST_OUTCOME_TRY(
        const std::string text,
        with_context(read_whole(path, environments::kProjectFileBytesMax), "--pyproject"));
    return with_context(
        environments::requirements_of_project(text, command.extras), "--pyproject " + path);
}

/// At most one of the options is there.
Status read_python_packages(const EnvCreate& command, Wanted& wanted) {
    if (!command.conda.empty()) {
        return read_conda(command.conda, wanted);
    }
    if (!command.lock.empty()) {
        BOOST_OUTCOME_TRY(wanted.requirements, read_lock(command.lock));
    } else if (!command.project.empty()) {
        BOOST_OUTCOME_TRY(wanted.requirements, read_project(command));
    } else if (!command.requirements.empty()) {
        BOOST_OUTCOME_TRY(
            wanted.requirements,
            with_context(
                read_whole(command.requirements, environments::kRequirementsBytesMax),
                "--requirements"));
    }
    return ok();
}

/// A lock is beside its package.json.
Status read_node_packages(const EnvCreate& command, environments::NodeOrder& order) {
    std::error_code error;
    fs::path manifest = command.node_packages;
    if (fs::is_directory(manifest, error)) {
        manifest /= "package.json";
    }
    const std::string what = "--npm " + manifest.string();
    BOOST_OUTCOME_TRY(
        const std::string text,
        with_context(read_whole(manifest, environments::kNodeManifestBytesMax), "--npm"));
    BOOST_OUTCOME_TRY(
        order.dependencies, with_context(environments::read_node_manifest(text), what));
    const fs::path lock = manifest.replace_filename("package-lock.json");
    if (fs::exists(fs::symlink_status(lock, error))) {
        BOOST_OUTCOME_TRY(
            order.lock, with_context(read_file(lock, environments::kNodeLockBytesMax), "--npm"));
    }
    order.registry = command.node_registry;
    BOOST_OUTCOME_TRY(order.npm, environments::find_npm());
    return ok();
}

}  // namespace

Result<environments::DebianOrder> debian_order_of(const std::vector<std::string>& packages) {
    environments::DebianOrder order;
    BOOST_OUTCOME_TRY(
        order.packages, with_context(environments::check_debian_packages(packages), "--apt"));
    if (!order.packages.empty()) {
        BOOST_OUTCOME_TRY(order.apt_get, environments::find_apt_get());
        BOOST_OUTCOME_TRY(order.dpkg_deb, environments::find_dpkg_deb());
    }
    return order;
}

Result<Wanted> read_wanted(const EnvCreate& command) {
    Wanted wanted;
    BOOST_OUTCOME_TRY(read_python_packages(command, wanted));
    if (!command.node_packages.empty()) {
        BOOST_OUTCOME_TRY(read_node_packages(command, wanted.node));
    }
    BOOST_OUTCOME_TRY(wanted.debian, debian_order_of(command.debian_packages));
    return wanted;
}

}  // namespace cellkeep::cli
