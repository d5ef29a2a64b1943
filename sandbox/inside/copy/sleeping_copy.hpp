// SPDX-License-Identifier: Apache-2.0
//
// A copy of an interpreter that sleeps until it is asked for a fork of itself: the guest's half of
// a checkpoint. All processes made here are children of pid 1, so each outlives the process that it
// was forked from. A copy holds its own socket and what the user's code had open, and neither
// the link nor the outputs of the process that goes on. After the fork nothing here allocates.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>

namespace cellkeep::sandbox {

/// What is a descriptor's own in every process that goes on from a copy.
enum class ChannelEnd : std::uint8_t { kStdout, kStderr, kLink };

struct ChannelDescriptor {
    int fd = -1;
    ChannelEnd end = ChannelEnd::kLink;
    bool close_on_exec = false;
};

struct FilePosition {
    int fd = -1;
    off_t offset = 0;
};

/// What a process that goes on does before the server speaks to it: the one that was left may live
/// yet. Not in a branch, and not if threads go on in it.
struct Beginning {
    void (*begin)(void* context, bool reseed) = nullptr;
    /// In the copy, before the first process leaves it for a branch: what each of them would
    /// otherwise do by itself. Only if there were no other threads: what ends with those that are
    /// lost may change files, and they are the branch's.
    void (*settle)(void* context) = nullptr;
    void* context = nullptr;
};

struct CopyOrder {
    /// A blocking SOCK_SEQPACKET socket, which the caller keeps. The server has the other end: its
    /// end of file is the copy's end.
    int socket = -1;
    /// The link, which must be among them, and all that are the same file as it or an output.
    std::span<const ChannelDescriptor> channels;
    /// Of the process that is copied, besides the caller.
    enum class Threads {
        kNone,   // the copy is made by one clone(2)
        kCarry,  // go on in each process that is woken (parked_threads.hpp)
        kDrop    // are lost: fork(3), whose handlers know of locks that those may hold
    };
    Threads threads = Threads::kNone;
    /// Regular files that a process goes on at these places in: it shares them with the process
    /// that was left. Of a branch they are the caller's to move: its files are others.
    std::span<const FilePosition> files{};
    Beginning beginning{};
};

struct CopyOutcome {
    enum class Where {
        kHere,   // in the process that asked; copied is the copy's number
        kWoken,  // in a fork of the copy, some time later: channels are the new ones
        kFailed  // there is no copy: error
    };
    Where where = Where::kFailed;
    pid_t copied = 0;
    int error = 0;
    pid_t thread = 0;     // kFailed, ETIMEDOUT or EPROTO: which one could not be stopped
    bool reseed = false;  // kWoken
    bool branch = false;  // kWoken: in a sandbox of its own, where its files are others
    bool begun = false;   // kWoken: CopyOrder::beginning was called
};

/// Call it with nothing buffered that a fork would write again. Returns in two processes; in the
/// copy itself it never does.
CopyOutcome make_sleeping_copy(const CopyOrder& order) noexcept;

}  // namespace cellkeep::sandbox
