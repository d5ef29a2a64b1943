// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/kernelspec_command.hpp"

#include "kernel-manager/cli/commands.hpp"
#include "kernel-manager/cli/console.hpp"
#include "kernel-manager/cli/kernel.hpp"
#include "kernel-manager/cli/kernelspec.hpp"
#include "kernel-manager/cli/kernelspec_paths.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace cellkeep::cli {

namespace {

Result<std::string> directory_of(const KernelspecPlace& place) {
    if (!place.prefix.has_value()) {
        return user_kernels_directory(process_environment());
    }
    std::error_code error;
    const auto prefix = std::filesystem::absolute(*place.prefix, error);
    if (error) {
        return Error::from_errno(error.value(), "--prefix " + *place.prefix);
    }
    return prefix_kernels_directory(prefix.lexically_normal().string());
}

/// As supported_features (messaging specification 5.5) and as the older field has it.
bool says_debugger(const nlohmann::json& info) {
    const auto features = info.value("supported_features", nlohmann::json::array());
    const bool listed = features.is_array() &&
                        std::find(features.begin(), features.end(), "debugger") != features.end();
    return listed || info.value("debugger", nlohmann::json()) == true;
}

Result<std::string> install(const KernelspecInstall& command) {
    BOOST_OUTCOME_TRY(check_kernelspec_name(command.place.name));
    BOOST_OUTCOME_TRY(const std::string directory, directory_of(command.place));
    BOOST_OUTCOME_TRY(parse_share_directory(command.notebook.share_cwd));
    // Where this is typed is not where a notebook will be.
    NotebookOptions here = command.notebook;
    here.share_cwd = "none";
    BOOST_OUTCOME_TRY(const auto config, make_notebook_service(here));
    const session::KernelSpec* language = config.catalog.find(command.notebook.language);
    if (language == nullptr) {
        return Error(
            ErrorCode::kInvalidArgument,
            "--language: " + command.notebook.language + " is not offered");
    }
    std::error_code error;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) {
        return Error::from_errno(error.value(), "readlink(/proc/self/exe)");
    }
    Kernelspec spec;
    spec.program = program.string();
    spec.display_name = command.display_name.value_or(language->display_name);
    spec.notebook = command.notebook;
    if (command.check) {
        auto info = ask_kernel_info(here);
        if (info.has_error()) {
            return std::move(info).error().with_context(
                "such a kernel does not start here, so nothing was installed");
        }
        spec.debugger = says_debugger(info.value());
    }
    BOOST_OUTCOME_TRY(write_kernelspec(
        directory,
        command.place.name,
        to_json(spec),
        command.place.force ? Overwrite::kAny : Overwrite::kOwn));
    return directory + "/" + command.place.name;
}

Result<std::string> remove(const KernelspecPlace& place) {
    BOOST_OUTCOME_TRY(const std::string directory, directory_of(place));
    BOOST_OUTCOME_TRY(
        remove_kernelspec(directory, place.name, place.force ? Overwrite::kAny : Overwrite::kOwn));
    return directory + "/" + place.name;
}

int report(const Result<std::string>& done, const char* verb) {
    if (done.has_error()) {
        print_error(done.error());
        return kExitFailed;
    }
    print(std::string(verb) + " " + done.value() + "\n");
    return kExitDone;
}

}  // namespace

int kernelspec_install(const KernelspecInstall& command) {
    return report(install(command), "Installed");
}

int kernelspec_list() {
    const auto specs = list_kernelspecs(kernels_directories(process_environment()));
    std::size_t width = 0;
    for (const InstalledKernelspec& spec : specs) {
        width = std::max(width, spec.name.size());
    }
    for (const InstalledKernelspec& spec : specs) {
        std::error_code error;
        std::string line = spec.name;
        line.resize(width + 2, ' ');
        line += spec.directory + "  \"" + spec.display_name + "\"";
        if (spec.hidden) {
            line += "  (hidden by another of this name)";
        }
        if (!std::filesystem::exists(spec.program, error)) {
            line += "  (" + spec.program + " is gone)";
        }
        print(line + "\n");
    }
    if (specs.empty()) {
        print("No kernelspec of Cellkeep is installed. Install one: cellkeep kernelspec install\n");
    }
    return kExitDone;
}

int kernelspec_remove(const KernelspecPlace& place) {
    return report(remove(place), "Removed");
}

}  // namespace cellkeep::cli
