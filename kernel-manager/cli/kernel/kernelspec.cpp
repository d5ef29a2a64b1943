// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/kernel/kernelspec.hpp"

#include "kernel-manager/cli/json_field.hpp"
#include "kernel-manager/cli/version.hpp"
#include "kernel-manager/jupyter/rest/logos.hpp"
#include "protocol/json.hpp"
#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

namespace cellkeep::cli {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::size_t kSpecBytesMax = 1ULL << 20U;
constexpr std::size_t kNameBytesMax = 128;
/// In a kernelspec's metadata: this one is ours.
constexpr const char* kMark = "cellkeep";

std::optional<json> load_spec(const fs::path& directory) {
    const auto text = read_file((directory / "kernel.json").string(), kSpecBytesMax);
    if (text.has_error()) {
        return std::nullopt;
    }
    auto spec = protocol::parse_json_object(text.value(), "kernel.json");
    return spec.has_value() ? std::optional(std::move(spec).value()) : std::nullopt;
}

bool is_ours(const json& spec) {
    return spec.contains("metadata") && spec["metadata"].is_object() &&
           spec["metadata"].contains(kMark);
}

/// Whether path may be replaced or removed.
Status check_ours(const fs::path& path, Overwrite overwrite) {
    if (overwrite == Overwrite::kAny) {
        return ok();
    }
    const auto spec = load_spec(path);
    if (spec.has_value() && is_ours(*spec)) {
        return ok();
    }
    return Error(
        ErrorCode::kConflict,
        path.string() + " is not a kernelspec of Cellkeep",
        "Choose another --name, or use --force.");
}

/// A directory that goes away with its name unless it was given another.
class Draft {
 public:
    explicit Draft(fs::path path) : path_(std::move(path)) {}
    Draft(const Draft&) = delete;
    Draft& operator=(const Draft&) = delete;
    ~Draft() {
        std::error_code ignored;  // Ignored: renamed away, or a hidden directory stays.
        fs::remove_all(path_, ignored);
    }
    const fs::path& path() const { return path_; }

 private:
    fs::path path_;
};

/// In one step: who reads meanwhile sees the old directory or the new one.
Status put_in_place(const Draft& draft, const fs::path& target) {
    std::error_code error;
    const bool replaces = fs::exists(fs::symlink_status(target, error));
    // With RENAME_EXCHANGE the draft becomes what was there, and goes away with it (rename(2)).
    const unsigned int flags = replaces ? RENAME_EXCHANGE : RENAME_NOREPLACE;
    if (::renameat2(AT_FDCWD, draft.path().c_str(), AT_FDCWD, target.c_str(), flags) == 0) {
        return ok();
    }
    return Error::from_errno(errno, "rename(" + target.string() + ")");
}

}  // namespace

Status check_kernelspec_name(const std::string& name) {
    const bool good = std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '_' || c == '-';
    });
    if (!good || name.empty() || name.size() > kNameBytesMax || name.front() == '.') {
        return Error(
            ErrorCode::kInvalidArgument,
            "--name: \"" + name + "\" is no name of a kernelspec",
            "Use letters, digits, '.', '_' and '-'.");
    }
    return ok();
}

json to_json(const Kernelspec& spec) {
    json argv = {spec.program, "kernel", "-f", "{connection_file}"};
    for (const std::string& argument : to_arguments(spec.notebook)) {
        argv.push_back(argument);
    }
    return {
        {"argv", std::move(argv)},
        {"display_name", spec.display_name},
        {"language", spec.language},
        {"interrupt_mode", "message"},
        // Below 5.6, which would mean the handshake of JEP 66.
        {"kernel_protocol_version", "5.5"},
        {"metadata", {{"debugger", spec.debugger}, {kMark, {{"version", version_text()}}}}}};
}

Status write_kernelspec(
    const std::string& directory,
    const std::string& name,
    const json& spec,
    Overwrite overwrite,
    const std::string& logo_folder) {
    BOOST_OUTCOME_TRY(check_kernelspec_name(name));
    const fs::path target = fs::path(directory) / name;
    std::error_code error;
    (void)fs::create_directories(directory, error);
    if (error) {
        return Error::from_errno(error.value(), "mkdir(" + directory + ")");
    }
    if (fs::exists(fs::symlink_status(target, error))) {
        BOOST_OUTCOME_TRY(check_ours(target, overwrite));
    }
    BOOST_OUTCOME_TRY(const std::string random, random_hex(8));
    const Draft draft(fs::path(directory) / (".cellkeep-" + random));
    if (!fs::create_directory(draft.path(), error)) {
        return Error::from_errno(error.value(), "mkdir(" + draft.path().string() + ")");
    }
    for (const jupyter::Logo& logo : jupyter::logos()) {
        const std::string file(logo.file);
        std::string bytes(logo.bytes);
        if (!logo_folder.empty()) {
            if (!fs::exists(fs::path(logo_folder) / file, error)) {
                continue;
            }
            BOOST_OUTCOME_TRY(bytes, read_file(logo_folder + "/" + file, kSpecBytesMax));
        }
        BOOST_OUTCOME_TRY(write_file_atomically((draft.path() / file).string(), bytes, 0644));
    }
    BOOST_OUTCOME_TRY(
        write_file_atomically((draft.path() / "kernel.json").string(), spec.dump(1) + "\n", 0644));
    return put_in_place(draft, target);
}

Status remove_kernelspec(
    const std::string& directory, const std::string& name, Overwrite overwrite) {
    BOOST_OUTCOME_TRY(check_kernelspec_name(name));
    const fs::path target = fs::path(directory) / name;
    std::error_code error;
    if (!fs::exists(fs::symlink_status(target, error))) {
        return Error(
            ErrorCode::kNotFound,
            "there is no kernelspec " + target.string(),
            "\"cellkeep kernelspec list\" shows where they are.");
    }
    BOOST_OUTCOME_TRY(check_ours(target, overwrite));
    (void)fs::remove_all(target, error);
    if (error) {
        return Error::from_errno(error.value(), "remove(" + target.string() + ")");
    }
    return ok();
}

std::vector<InstalledKernelspec> list_kernelspecs(const std::vector<std::string>& directories) {
    std::vector<InstalledKernelspec> found;
    std::set<std::string> names;  // of every kernelspec, ours or not
    for (const std::string& directory : directories) {
        std::set<fs::path> entries;
        std::error_code error;
        for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
             entry.increment(error)) {
            entries.insert(entry->path());
        }
        for (const fs::path& path : entries) {
            const auto spec = load_spec(path);
            if (!spec.has_value()) {
                continue;
            }
            const std::string name = path.filename().string();
            const bool first = names.insert(name).second;
            if (!is_ours(*spec)) {
                continue;
            }
            const json argv = spec->value("argv", json::array());
            const bool has_program = argv.is_array() && !argv.empty() && argv[0].is_string();
            found.push_back(
                {name,
                 path.string(),
                 text_field(*spec, "display_name"),
                 has_program ? argv[0].get<std::string>() : std::string(),
                 !first});
        }
    }
    return found;
}

}  // namespace cellkeep::cli
