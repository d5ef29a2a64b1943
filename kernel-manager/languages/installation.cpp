// SPDX-License-Identifier: Apache-2.0
//
// Where the parts of this installation are.
#include "kernel-manager/languages/installation.hpp"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace cellkeep::session {

namespace fs = std::filesystem;

namespace {

constexpr const char* kDriverModule = "cellkeep_driver.py";

}  // namespace

Result<Installation> find_installation() {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    if (error) {
        return Error(ErrorCode::kSystem, "readlink(/proc/self/exe): " + error.message());
    }
    Installation found;
    const fs::path bin = program.parent_path();
    found.binary_dir = bin.string();
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread changes the environment.
    const char* path = std::getenv("PATH");
    found.program_path = path == nullptr ? "/usr/bin:/bin" : path;
    // Installed: PREFIX/bin and PREFIX/lib/cellkeep. Built: build/<preset>/bin, and the sources and
    // environments two and three levels up.
    const fs::path installed = bin.parent_path() / "lib" / "cellkeep";
    if (fs::exists(installed, error)) {
        found.python_package_dir = (installed / "python").string();
        found.environments = (installed / "environments").string();
        found.python_environment = found.environments + "/python";
        found.driver_module = (installed / "driver" / kDriverModule).string();
        found.kernel_directories = {(installed / "kernels").string()};
        if (fs::is_directory(installed / "shared", error)) {
            found.shared_libraries = (installed / "shared").string();
        }
        return found;
    }
    const fs::path build = bin.parent_path().parent_path();
    const fs::path kernels = build.parent_path() / "kernels";
    found.python_package_dir = (kernels / "python").string();
    found.environments = (build / "environments").string();
    found.python_environment = found.environments + "/python";
    found.driver_module = (kernels / "driver" / kDriverModule).string();
    // The second: of languages whose programs are built.
    found.kernel_directories = {
        kernels.string(), (bin.parent_path() / "language-folders").string()};
    return found;
}

}  // namespace cellkeep::session
