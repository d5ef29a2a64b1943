// SPDX-License-Identifier: Apache-2.0
//
// Everything below a directory of a workspace, one entry at a time: directories before what is in
// them, by name. The guest may change the tree meanwhile: each name of a directory comes at most
// once, links are never followed, and named bounds end the walk. What belongs to the server
// (.cellkeep, uploads on their way) is left out. Holds no descriptor between calls. One thread.
#pragma once

#include "protocol/support/unique_fd.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::sandbox {

/// The directory at the workspace's root that holds what the server saves for the guest.
inline constexpr std::string_view kServerDirectory = ".cellkeep";

/// Entries of one walk, as many as a workspace has inodes (sandbox/policy/policy.hpp); directories
/// in one another; bytes of all names that wait.
inline constexpr std::size_t kWalkEntriesMax = 20'000;
inline constexpr std::size_t kWalkDepthMax = 64;
inline constexpr std::size_t kWalkNameBytesMax = 4ULL << 20U;

struct WalkedEntry {
    std::string path;  // relative to the workspace
    FileState state;
};

class WorkspaceWalker {
 public:
    /// The workspace's descriptor must stay open while the walker is used.
    WorkspaceWalker(const Workspace& workspace, std::string start);

    /// Called with each directory's path and descriptor before its entries are read.
    void set_on_directory(std::function<void(const std::string&, int)> callback) {
        on_directory_ = std::move(callback);
    }

    /// Neither this path nor what is below it comes.
    void leave_out(std::string path) { left_out_ = std::move(path); }

    /// Nothing at the end.
    std::optional<WalkedEntry> next();

    /// False: a bound was reached, or a directory could not be read; what it holds is missing.
    bool complete() const { return complete_; }

 private:
    struct Frame {
        std::vector<WalkedEntry> entries;  // the last is next
    };
    void enter(const std::string& path);
    void read(const std::string& path, int directory, std::vector<WalkedEntry>& entries);

    Workspace workspace_;
    std::function<void(const std::string&, int)> on_directory_;
    std::string left_out_;  // empty: nothing
    std::vector<Frame> frames_;
    std::optional<std::string> to_enter_;
    std::size_t seen_ = 0;
    std::size_t name_bytes_ = 0;
    bool complete_ = true;
};

/// Whether a path of the workspace is the server's own.
bool is_server_path(std::string_view path);

}  // namespace cellkeep::sandbox
