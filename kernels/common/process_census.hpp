// SPDX-License-Identifier: Apache-2.0
//
// What this process has that a fork of it has not, or shares: threads, children, descriptors,
// mappings. Read from /proc/self (proc(5)).
#pragma once

#include "protocol/support/result.hpp"
#include "sandbox/inside/copy/sleeping_copy.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cellkeep::kernels {

/// Descriptors that are looked at. A session's limit of open files is far below.
inline constexpr std::size_t kCensusDescriptorsMax = 65536;

/// Which file a descriptor is, by device and inode; invalid if it is none.
struct FileIdentity {
    dev_t device = 0;
    ino_t inode = 0;
    bool valid = false;
    bool operator==(const FileIdentity&) const = default;
};
FileIdentity identify(int fd);

/// The link and the two outputs that the process was given.
struct ChannelIdentities {
    FileIdentity out;
    FileIdentity err;
    FileIdentity link;
};

struct ProcessCensus {
    std::uint32_t threads = 0;          // besides the one that counts
    std::uint32_t children = 0;         // that have not ended
    std::uint32_t sockets = 0;          // besides the link and the ones named
    std::uint32_t shared_mappings = 0;  // that can be written to
    std::vector<sandbox::ChannelDescriptor> channels;
    std::vector<sandbox::FilePosition> files;  // regular ones
};

/// kLimitExceeded beyond kCensusDescriptorsMax; kSystem if /proc does not show it.
Result<ProcessCensus> take_census(
    const ChannelIdentities& channels, std::span<const int> own_sockets);

}  // namespace cellkeep::kernels
