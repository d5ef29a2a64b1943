// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/mcp/setup/config_change.hpp"

#include "kernel-manager/cli/mcp/setup/json_edit.hpp"
#include "kernel-manager/cli/mcp/setup/lines.hpp"
#include "protocol/support/syscall.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace cellkeep::cli {

namespace {

std::string backup_of(const std::string& path) {
    return path + std::string(kBackupSuffix);
}

/// The whole file; nothing if there is none.
Result<std::optional<std::string>> read_if_there(const std::string& path) {
    auto read = read_file(path, kClientConfigBytesMax);
    if (read.has_error()) {
        if (read.error().errno_value() == ENOENT) {
            return std::optional<std::string>();
        }
        return read.error();
    }
    return std::optional<std::string>(std::move(read).value());
}

/// The file as it is: where it really is, what it says.
Result<ConfigChange> look_at_config(const std::string& path) {
    ConfigChange change;
    std::error_code failure;
    const auto real = std::filesystem::weakly_canonical(path, failure);
    change.path = failure ? path : real.string();
    struct stat info {};
    if (::stat(change.path.c_str(), &info) == 0) {
        if (!S_ISREG(info.st_mode)) {
            return Error(ErrorCode::kInvalidArgument, change.path + " is no plain file.");
        }
        change.mode = info.st_mode & 0777U;
    }
    BOOST_OUTCOME_TRY(change.before, read_if_there(change.path));
    return change;
}

/// What stood there before the entry was added, if that is all that has happened since.
std::string undo_wholly(
    const ClientProgram& program,
    const std::string& removed,
    const std::optional<std::string>& backup) {
    if (!backup || removed == *backup || program.format != ConfigFormat::kJson) {
        return removed;
    }
    const auto without = remove_empty_json_object(removed, program.container);
    return without.has_value() && without.value() == *backup ? without.value() : removed;
}

}  // namespace

Result<ConfigChange> plan_install(
    const ClientProgram& program, const std::string& path, const ServerEntry& entry) {
    BOOST_OUTCOME_TRY(ConfigChange change, look_at_config(path));
    BOOST_OUTCOME_TRY(change.after, add_entry(program, change.before.value_or(""), entry));
    return change;
}

Result<ConfigChange> plan_removal(
    const ClientProgram& program, const std::string& path, const ServerEntry& entry) {
    BOOST_OUTCOME_TRY(ConfigChange change, look_at_config(path));
    BOOST_OUTCOME_TRY(
        const std::string removed, remove_entry(program, change.before.value_or(""), entry.name));
    BOOST_OUTCOME_TRY(const auto backup, read_if_there(backup_of(change.path)));
    change.after = undo_wholly(program, removed, backup);
    if (!backup) {
        // Whether the file holds nothing but what an installation into nothing leaves.
        const auto alone = add_entry(program, "", entry);
        const auto left =
            alone.has_value() ? remove_entry(program, alone.value(), entry.name) : alone;
        if (left.has_value() && left.value() == removed) {
            change.after.reset();
        }
    }
    return change;
}

std::string describe_change(const ConfigChange& change) {
    if (!change.after) {
        return "remove " + change.path + "\n" + show_difference(*change.before, "");
    }
    return (change.before ? "change " : "make ") + change.path + "\n" +
           show_difference(change.before.value_or(""), *change.after);
}

Status apply_change(const ConfigChange& change) {
    BOOST_OUTCOME_TRY(const auto now, read_if_there(change.path));
    if (now != change.before) {
        return Error(
            ErrorCode::kConflict,
            change.path + " has been changed meanwhile.",
            "Close the program that writes it, and try again.");
    }
    const std::string backup_path = backup_of(change.path);
    std::error_code failure;
    if (!change.after) {
        std::filesystem::remove(change.path, failure);
        return failure ? Status(Error(ErrorCode::kSystem, "remove(" + change.path + ")")) : ok();
    }
    std::filesystem::create_directories(std::filesystem::path(change.path).parent_path(), failure);
    BOOST_OUTCOME_TRY(const auto backup, read_if_there(backup_path));
    if (change.before && !backup && change.changes()) {
        BOOST_OUTCOME_TRY(write_file_atomically(backup_path, *change.before, change.mode));
    }
    BOOST_OUTCOME_TRY(write_file_atomically(change.path, *change.after, change.mode));
    if (backup && *backup == *change.after) {
        std::filesystem::remove(backup_path, failure);  // Ignored: it says what the file says.
    }
    return ok();
}

}  // namespace cellkeep::cli
