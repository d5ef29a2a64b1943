// SPDX-License-Identifier: Apache-2.0
//
// A directory of a workspace as a compressed tar archive, made piece by piece in bounded memory.
// Wraps libarchive. The guest may change everything meanwhile: links are archived as links and
// never followed, a file is read up to the size it had when it was opened, and what could not be
// read as it was is named in the archive's last member. One thread.
#pragma once

#include "protocol/support/result.hpp"
#include "sandbox/workspace/workspace_walker.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

struct archive;
struct archive_entry;

namespace cellkeep::api {

/// The member that says what is missing; there is none if nothing is.
inline constexpr const char* kArchiveNotes = ".cellkeep/archive-notes.txt";
/// Bytes of it.
inline constexpr std::size_t kArchiveNotesBytesMax = 64ULL << 10U;
/// What one step reads of a file.
inline constexpr std::size_t kArchiveStepBytes = 64ULL << 10U;

class WorkspaceArchive {
 public:
    /// What is mounted at a path of the workspace; nothing: the workspace's own file is.
    using OpenInput =
        std::function<std::optional<Result<sandbox::Workspace::OpenedFile>>(const std::string&)>;

    /// The workspace's descriptor must stay open. Files are taken while they fit into bytes_max: a
    /// file with holes is as long as it says. Inputs are as long as the operator made them.
    static Result<WorkspaceArchive> create(
        const sandbox::Workspace& workspace,
        const std::string& start,
        std::uint64_t bytes_max,
        OpenInput open_input = {});

    /// Goes on by one member or kArchiveStepBytes. Afterwards take() has what became of it, which
    /// may be nothing yet. False at the end.
    Result<bool> advance();
    std::string take();

 private:
    struct Sink;  // where libarchive writes to: at a place that stays
    struct OpenMember {
        sandbox::Workspace::OpenedFile file;
        std::string path;
        std::uint64_t done = 0;
        bool noted = false;
    };
    using Handle = std::unique_ptr<archive, int (*)(archive*)>;

    WorkspaceArchive(
        std::shared_ptr<Sink> sink,
        Handle handle,
        const sandbox::Workspace& workspace,
        std::string start,
        std::uint64_t bytes_max,
        OpenInput open_input);
    Status add(const sandbox::WalkedEntry& entry);
    Status add_directory(const sandbox::WalkedEntry& entry);
    Status add_link(const sandbox::WalkedEntry& entry);
    Status add_file(const sandbox::WalkedEntry& entry);
    Status add_input(const std::string& path, Result<sandbox::Workspace::OpenedFile> opened);
    Status begin_file(const std::string& path, sandbox::Workspace::OpenedFile file);
    Status add_header(archive_entry* entry, const std::string& path);
    Status copy_some();
    Status finish();
    void note(const std::string& path, const std::string& why);
    Error failure(const char* operation) const;

    std::shared_ptr<Sink> sink_;
    Handle handle_;  // before sink_ goes
    sandbox::Workspace workspace_;
    sandbox::WorkspaceWalker walker_;
    std::optional<OpenMember> open_;
    std::unordered_map<std::uint64_t, std::string> first_names_;  // of files, by inode
    std::uint64_t bytes_left_;
    OpenInput open_input_;
    std::string notes_;
    std::string buffer_;
};

}  // namespace cellkeep::api
