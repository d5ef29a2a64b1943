// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/kernel/kernelspec_paths.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace cellkeep::cli {

Environment process_environment() {
    return [](const char* name) -> std::optional<std::string> {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): read once, before any other thread exists.
        const char* value = std::getenv(name);
        return value == nullptr || *value == '\0' ? std::nullopt
                                                  : std::optional<std::string>(value);
    };
}

Result<std::string> user_kernels_directory(const Environment& environment) {
    if (const auto data = environment("JUPYTER_DATA_DIR")) {
        return *data + "/kernels";
    }
    if (const auto data = environment("XDG_DATA_HOME")) {
        return *data + "/jupyter/kernels";
    }
    if (const auto home = environment("HOME")) {
        return *home + "/.local/share/jupyter/kernels";
    }
    return Error(
        ErrorCode::kInvalidArgument,
        "none of JUPYTER_DATA_DIR, XDG_DATA_HOME and HOME is set",
        "Give --prefix DIR.");
}

std::string prefix_kernels_directory(const std::string& prefix) {
    return prefix + "/share/jupyter/kernels";
}

std::vector<std::string> kernels_directories(const Environment& environment) {
    std::vector<std::string> directories;
    const auto add = [&directories](const std::string& directory) {
        if (std::find(directories.begin(), directories.end(), directory) == directories.end()) {
            directories.push_back(directory);
        }
    };
    if (const auto path = environment("JUPYTER_PATH")) {
        std::istringstream entries(*path);
        for (std::string entry; std::getline(entries, entry, ':');) {
            if (!entry.empty()) {
                add(entry + "/kernels");
            }
        }
    }
    if (const auto own = user_kernels_directory(environment); own.has_value()) {
        add(own.value());
    }
    for (const char* prefix : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
        if (const auto value = environment(prefix)) {
            add(prefix_kernels_directory(*value));
        }
    }
    add(prefix_kernels_directory("/usr/local"));
    add(prefix_kernels_directory("/usr"));
    return directories;
}

}  // namespace cellkeep::cli
