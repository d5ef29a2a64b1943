// SPDX-License-Identifier: Apache-2.0
//
// What `cellkeep mcp install` and `remove` do to a program's configuration file: first as a value
// that can be shown, then on the disk.
#pragma once

#include "kernel-manager/cli/mcp/setup/client_program.hpp"
#include "protocol/support/result.hpp"

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>

namespace cellkeep::cli {

/// A program's configuration that is longer is none.
inline constexpr std::size_t kClientConfigBytesMax = 16ULL << 20U;
/// Behind the name of a file, as it was before the first change.
inline constexpr std::string_view kBackupSuffix = ".before-cellkeep";

struct ConfigChange {
    std::string path;                   // what is written: links on the way are followed
    std::optional<std::string> before;  // nothing: there is no such file
    std::optional<std::string> after;   // nothing: the file goes
    mode_t mode = 0600;                 // of the file

    bool changes() const { return before != after; }
};

/// As add_entry(). kInvalidArgument also if the path names something that is no plain file;
/// kLimitExceeded beyond kClientConfigBytesMax.
Result<ConfigChange> plan_install(
    const ClientProgram& program, const std::string& path, const ServerEntry& entry);
/// As remove_entry(). It removes a file that the installation made. A file that has not changed
/// since the installation becomes what it was before, to the byte.
Result<ConfigChange> plan_removal(
    const ClientProgram& program, const std::string& path, const ServerEntry& entry);

/// For people: the file and the lines that differ.
std::string describe_change(const ConfigChange& change);
/// Keeps what was there beside it, unless something is kept already, and takes that away when the
/// file is as it was. kConflict: the file is no longer what the change was made of.
Status apply_change(const ConfigChange& change);

}  // namespace cellkeep::cli
