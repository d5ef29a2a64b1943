// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/kernel/kernelspec_command.hpp"

#include "kernel-manager/cli/commands.hpp"
#include "kernel-manager/cli/kernel/kernel.hpp"
#include "kernel-manager/cli/kernel/kernelspec.hpp"
#include "kernel-manager/cli/kernel/kernelspec_paths.hpp"
#include "kernel-manager/cli/run/console.hpp"
#include "kernel-manager/cli/serve/service_setup.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/languages/named_environments.hpp"

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

/// One language's; notebook.language is it.
Result<std::string> install_one(
    const KernelspecInstall& command,
    const session::KernelSpec& language,
    const std::string& directory,
    const std::string& program) {
    const std::string name =
        command.place.name.value_or(default_kernelspec_name(session::offered_by(language)));
    BOOST_OUTCOME_TRY(check_kernelspec_name(name));
    Kernelspec spec;
    spec.program = program;
    spec.display_name = command.display_name.value_or(language.display_name);
    spec.notebook = command.notebook;
    spec.notebook.language = session::offered_by(language);
    spec.language = language.language;
    if (command.check) {
        // Where this is typed is not where a notebook will be.
        NotebookOptions here = spec.notebook;
        here.share_cwd = "none";
        auto info = ask_kernel_info(here);
        if (info.has_error()) {
            return std::move(info).error().with_context(
                "such a kernel does not start here, so nothing was installed");
        }
        spec.debugger = says_debugger(info.value());
    }
    BOOST_OUTCOME_TRY(write_kernelspec(
        directory,
        name,
        to_json(spec),
        command.place.force ? Overwrite::kAny : Overwrite::kOwn,
        language.folder));
    return directory + "/" + name;
}

/// The kernelspecs that it wrote, before one failed or all.
Status install(const KernelspecInstall& command, std::vector<std::string>& written) {
    if (command.all && (command.place.name || command.display_name)) {
        return Error(
            ErrorCode::kInvalidArgument, "--all: each language has a name of its own already");
    }
    if (command.place.name) {
        BOOST_OUTCOME_TRY(check_kernelspec_name(*command.place.name));
    }
    BOOST_OUTCOME_TRY(const std::string directory, directory_of(command.place));
    BOOST_OUTCOME_TRY(parse_share_directory(command.notebook.share_cwd));
    NotebookOptions here = command.notebook;
    here.share_cwd = "none";
    BOOST_OUTCOME_TRY(const auto config, make_notebook_service(here));
    std::error_code error;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) {
        return Error::from_errno(error.value(), "readlink(/proc/self/exe)");
    }
    const std::vector<std::string> languages =
        command.all ? config.catalog.languages()
                    : std::vector<std::string>{command.notebook.language};
    if (command.all) {
        print_not_offered(config.catalog);
    }
    for (const std::string& name : languages) {
        const session::KernelSpec* language = config.catalog.find(name);
        if (language == nullptr) {
            Error refused = config.catalog.refuse(name);
            return Error(
                refused.code(), "--language: " + std::string(refused.reason()), refused.hint());
        }
        BOOST_OUTCOME_TRY(
            std::string path, install_one(command, *language, directory, program.string()));
        written.push_back(std::move(path));
    }
    return ok();
}

Result<std::string> remove_kernelspec(const KernelspecPlace& place) {
    BOOST_OUTCOME_TRY(const std::string directory, directory_of(place));
    const std::string name = place.name.value_or(default_kernelspec_name("python"));
    BOOST_OUTCOME_TRY(
        remove_kernelspec(directory, name, place.force ? Overwrite::kAny : Overwrite::kOwn));
    return directory + "/" + name;
}

}  // namespace

std::string default_kernelspec_name(const std::string& language) {
    return "cellkeep-" + language;
}

int kernelspec_install(const KernelspecInstall& command) {
    std::vector<std::string> written;
    const Status installed = install(command, written);
    for (const std::string& path : written) {
        print("Installed " + path + "\n");
    }
    if (installed.has_error()) {
        print_error(installed.error());
        return kExitFailed;
    }
    return kExitDone;
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
    const auto removed = remove_kernelspec(place);
    if (removed.has_error()) {
        print_error(removed.error());
        return kExitFailed;
    }
    print("Removed " + removed.value() + "\n");
    return kExitDone;
}

}  // namespace cellkeep::cli
