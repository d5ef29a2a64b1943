// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/foreign_launch.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

namespace cellkeep::session {

namespace fs = std::filesystem;

namespace {

constexpr const char* kInsideBridge = "/opt/cellkeep/kernels/foreign";
constexpr const char* kInsidePackages = "/opt/cellkeep/packages/foreign";
constexpr const char* kForeignDriver = "/opt/cellkeep/bin/cellkeep-kernel-driver";
constexpr const char* kInsidePython = "/opt/cellkeep/environment/bin/python";

/// An image has only the files of its packages from here, and a session sees no others.
constexpr std::string_view kSystem = "/usr/";

/// By lstat(2): a link may lead to what is only there inside.
Status check_in_image(const std::string& target, const image::ImageInUse& image) {
    std::error_code error;
    if (!fs::exists(fs::symlink_status(image.root + target, error))) {
        return Error(
            ErrorCode::kUnavailable,
            "it needs " + target +
                ", which is not in the environment image: of /usr that has "
                "what Debian packages hold");
    }
    return ok();
}

/// Beside the other drivers, one level deeper: it is no language by itself.
std::string bridge_of(const Installation& installation) {
    const fs::path kernels = fs::path(installation.driver_module).parent_path().parent_path();
    return (kernels / "foreign" / "bridge").string();
}

std::string bridge_packages(const Installation& installation) {
    return installation.environments + "/foreign";
}

std::vector<sandbox::ReadOnlyPath> program_paths(const Installation& installation) {
    return {
        {.source = installation.binary_dir + "/cellkeep-kernel-driver", .target = kForeignDriver},
        {.source = bridge_of(installation), .target = kInsideBridge}};
}

sandbox::ReadOnlyPath package_path(const Installation& installation) {
    return {.source = bridge_packages(installation), .target = kInsidePackages};
}

void add_once(const sandbox::ReadOnlyPath& path, std::vector<image::Addition>& additions) {
    const std::string target = path.target.substr(1);
    const bool known = std::any_of(
        additions.begin(), additions.end(), [&](const auto& one) { return one.target == target; });
    if (!known) {
        additions.push_back({path.source, target});
    }
}

}  // namespace

Status check_foreign_bridge(const Installation& installation) {
    for (const std::string& path : {bridge_of(installation), bridge_packages(installation)}) {
        std::error_code error;
        if (!fs::is_directory(path, error)) {
            return Error(
                ErrorCode::kUnavailable,
                "foreign-kernels: what speaks to them is missing: " + path,
                "./scripts/run makes it.");
        }
    }
    return ok();
}

void add_foreign_sources(
    const ForeignKernels& kernels, const Installation& installation, image::Sources& sources) {
    for (const sandbox::ReadOnlyPath& path : program_paths(installation)) {
        add_once(path, sources.program_additions);
    }
    add_once(package_path(installation), sources.environment_additions);
    std::set<std::string> known(sources.packages.begin(), sources.packages.end());
    for (const ForeignKernel& kernel : kernels.found) {
        for (const std::string& package : kernel.packages) {
            if (known.insert(package).second) {
                sources.packages.push_back(package);
            }
        }
    }
}

Result<KernelSpec> make_foreign_spec(
    const ForeignKernel& kernel,
    const Installation& installation,
    const KernelSpec& python,
    const image::Prepared* images) {
    const std::string inside = "/opt/cellkeep/kernelspecs/" + kernel.name;
    KernelSpec spec = python;
    spec.language = kernel.name;
    spec.display_name = kernel.display_name;
    spec.folder = kernel.resources;
    spec.language_info = {{"name", kernel.language}};
    spec.forkable = false;
    spec.debugger = false;
    // Those of the Python kernel's are not for others.
    std::erase_if(
        spec.env, [](const std::string& entry) { return entry.starts_with("CELLKEEP_"); });
    spec.argv = {
        kForeignDriver,
        kInsideBridge,
        std::string("python=") + kInsidePython,
        std::string("packages=") + kInsidePackages,
        "kernelspec=" + inside,
        "program=" + kernel.program};
    const auto add = [&spec](sandbox::ReadOnlyPath path, const image::ImageInUse* image) -> Status {
        if (image != nullptr) {
            BOOST_OUTCOME_TRY(check_in_image(path.target, *image));
            path.source = image->root + path.target;
        }
        spec.read_only.push_back(std::move(path));
        return ok();
    };
    for (const sandbox::ReadOnlyPath& path : program_paths(installation)) {
        BOOST_OUTCOME_TRY(add(path, images == nullptr ? nullptr : &images->programs));
    }
    BOOST_OUTCOME_TRY(
        add(package_path(installation), images == nullptr ? nullptr : &images->environment));
    for (const std::string& file : kernel.system_files) {
        if (images != nullptr && file.starts_with(kSystem)) {
            BOOST_OUTCOME_TRY(check_in_image(file, images->environment));
        }
    }
    BOOST_OUTCOME_TRY(add(
        {.source = kernel.resources, .target = inside, .optional = true, .shared = true}, nullptr));
    for (const sandbox::ReadOnlyPath& path : kernel.shared) {
        if (images == nullptr || !path.target.starts_with(kSystem)) {
            BOOST_OUTCOME_TRY(add(path, nullptr));
        }
    }
    return spec;
}

}  // namespace cellkeep::session
