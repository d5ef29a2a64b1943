// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/interpreter_copy.hpp"

#include "kernel-manager/environments/relocation.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace cellkeep::environments {

namespace fs = std::filesystem;

namespace {

/// Folders of a standard library that nobody's code needs: packages are the environment's, and
/// bytecode is made anew.
constexpr std::array<std::string_view, 7> kFoldersLeftOut{
    "__pycache__", "site-packages", "dist-packages", "test", "tests", "idlelib", "turtledemo"};
/// What programs that embed Python are linked with.
constexpr std::string_view kForLinking = "config-";

Error failed(const std::error_code& error, const fs::path& path) {
    return Error::from_errno(error.value(), "copy(" + path.string() + ")");
}

bool is_left_out(const std::string& folder) {
    return folder.starts_with(kForLinking) ||
           std::find(kFoldersLeftOut.begin(), kFoldersLeftOut.end(), folder) !=
               kFoldersLeftOut.end();
}

/// Counts what it has copied.
class Copier {
 public:
    explicit Copier(std::uint64_t bytes_max) : left_(bytes_max) {}

    /// The file that a link means; a link to nothing is left out.
    Status file(const fs::path& source, const fs::path& target) {
        std::error_code error;
        if (!fs::is_regular_file(source, error)) {
            return ok();
        }
        const std::uint64_t bytes = fs::file_size(source, error);
        if (error || bytes > left_) {
            return error ? failed(error, source)
                         : Error(ErrorCode::kLimitExceeded, "the interpreter is too large");
        }
        left_ -= bytes;
        fs::create_directories(target.parent_path(), error);
        if (!error) {
            fs::copy_file(source, target, error);
        }
        return error ? failed(error, source) : Status(ok());
    }

    Status tree(const fs::path& source, const fs::path& target) {
        std::error_code error;
        fs::recursive_directory_iterator at(source, error);
        for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
            const fs::path& path = at->path();
            if (at->is_directory(error)) {
                // Links to folders are not followed, and no copy of them is made.
                if (is_left_out(path.filename().string())) {
                    at.disable_recursion_pending();
                }
                continue;
            }
            BOOST_OUTCOME_TRY(file(path, target / path.lexically_relative(source)));
        }
        return error ? failed(error, source) : Status(ok());
    }

 private:
    std::uint64_t left_;
};

bool is_own_library(const std::string& path) {
    return fs::path(path).filename().string().starts_with("libpython");
}

}  // namespace

Status copy_interpreter(
    const PythonProgram& python, const std::string& directory, std::uint64_t bytes_max) {
    const fs::path target = directory;
    const fs::path prefix = python.prefix;
    Copier copier(bytes_max);
    const fs::path program = target / "bin" / python.name();
    BOOST_OUTCOME_TRY(copier.file(python.program, program));
    if (std::any_of(python.libraries.begin(), python.libraries.end(), is_own_library)) {
        std::error_code error;
        fs::permissions(program, fs::perms::owner_write, fs::perm_options::add, error);
        if (error) {
            return failed(error, program);
        }
        BOOST_OUTCOME_TRY(look_beside_itself(program.string()));
    }
    for (const std::string& library : python.libraries) {
        BOOST_OUTCOME_TRY(copier.file(library, target / "lib" / fs::path(library).filename()));
    }
    for (const std::string& folder : {python.standard_library, python.headers}) {
        if (!folder.empty()) {
            BOOST_OUTCOME_TRY(
                copier.tree(folder, target / fs::path(folder).lexically_relative(prefix)));
        }
    }
    return ok();
}

}  // namespace cellkeep::environments
