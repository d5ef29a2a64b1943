// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/language_folder.hpp"

#include "protocol/support/syscall.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

namespace cellkeep::session {

namespace fs = std::filesystem;

namespace {

/// Python is the catalog's own.
constexpr const char* kTaken = "python";

bool is_file_to_run(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

Result<protocol::KernelJson> read_about(const std::string& folder) {
    const std::string path = folder + "/" + std::string(protocol::kKernelJsonName);
    BOOST_OUTCOME_TRY(const std::string text, read_file(path, protocol::kKernelJsonBytesMax));
    return with_context(protocol::parse_kernel_json(text), path);
}

/// What to do about a file or a program that the host does not have.
std::string install_hint(const std::vector<std::string>& packages) {
    if (packages.empty()) {
        return {};
    }
    std::string names;
    for (const std::string& package : packages) {
        names += (names.empty() ? "" : " ") + package;
    }
    return "Install the Debian packages " + names + ", then start the server again.";
}

/// What of it is there, or what is not.
Result<LanguageFolder> complete(
    std::string folder,
    protocol::KernelJson about,
    const std::string& environments,
    std::string_view path) {
    const auto missing = [](const std::string& what, std::string hint = {}) {
        return Error(ErrorCode::kUnavailable, what, std::move(hint));
    };
    const std::string install = install_hint(about.system_packages);
    std::error_code error;
    for (const std::string& file : about.required_files) {
        if (!fs::exists(file, error)) {
            return missing("it needs " + file + ", which is not there", install);
        }
    }
    LanguageFolder found{std::move(folder), std::move(about), {}, {}, {}};
    for (const std::string& language : found.about.shares) {
        const fs::path beside = fs::path(found.path).parent_path() / language;
        if (!fs::exists(beside / protocol::kKernelJsonName, error)) {
            return missing("it shares the folder " + beside.string() + ", which is not there");
        }
        found.shared.emplace(language, beside.string());
    }
    for (const auto& [name, wanted] : found.about.programs) {
        std::string program = find_program(wanted, path);
        if (program.empty()) {
            return missing("it needs the program " + wanted + ", which is not on PATH", install);
        }
        found.programs.emplace(name, std::move(program));
    }
    if (!found.about.packages.empty()) {
        found.packages = environments + "/" + found.about.packages;
        if (!fs::is_directory(found.packages, error)) {
            return missing(
                "it needs the packages in " + found.packages + ", which is not there",
                "./scripts/run makes those of Cellkeep's own languages.");
        }
    }
    return found;
}

std::vector<std::string> folders_in(const std::string& directory) {
    std::vector<std::string> folders;
    std::error_code error;
    for (fs::directory_iterator at(directory, error), end; !error && at != end;
         at.increment(error)) {
        if (fs::exists(at->path() / protocol::kKernelJsonName, error)) {
            folders.push_back(at->path().string());
        }
    }
    std::sort(folders.begin(), folders.end());
    return folders;
}

}  // namespace

LanguageFolders find_language_folders(
    const std::vector<std::string>& directories,
    const std::string& environments,
    std::string_view path) {
    LanguageFolders result;
    std::set<std::string> names{kTaken};
    for (const std::string& directory : directories) {
        for (const std::string& folder : folders_in(directory)) {
            auto about = read_about(folder);
            if (!about) {
                result.not_offered.push_back(
                    {fs::path(folder).filename().string(),
                     about.error().message(),
                     about.error().hint()});
                continue;
            }
            const std::string language = about.value().language;
            if (!names.insert(language).second) {
                result.not_offered.push_back(
                    {language, folder + ": there is a language of that name already", ""});
                continue;
            }
            auto found = complete(folder, std::move(about.value()), environments, path);
            if (found) {
                result.found.push_back(std::move(found.value()));
            } else {
                result.not_offered.push_back(
                    {language, found.error().message(), found.error().hint()});
            }
        }
    }
    return result;
}

std::string find_program(const std::string& name, std::string_view path) {
    const auto resolve = [](const fs::path& found) {
        std::error_code error;
        const fs::path real = fs::canonical(found, error);
        return error ? std::string() : real.string();
    };
    if (name.find('/') != std::string::npos) {
        return is_file_to_run(name) ? resolve(name) : std::string();
    }
    for (std::size_t begin = 0; begin <= path.size();) {
        const std::size_t end = std::min(path.find(':', begin), path.size());
        const fs::path candidate = fs::path(path.substr(begin, end - begin)) / name;
        // A relative entry would mean another program after the server's next chdir.
        if (candidate.is_absolute() && is_file_to_run(candidate)) {
            return resolve(candidate);
        }
        begin = end + 1;
    }
    return {};
}

}  // namespace cellkeep::session
