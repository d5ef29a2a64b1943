// SPDX-License-Identifier: Apache-2.0
//
// Memory of this process that a fork shares with it (mmap(2), MAP_SHARED): of files, and such that
// multiprocessing makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cellkeep::kernels {

/// Looked at; what is beyond stays as it is.
inline constexpr std::size_t kSharedMappingsMax = 65536;

struct SharedMapping {
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    int protection = 0;  // PROT_*
};

/// Those that can be written to, in the order of their addresses: others do not change by this
/// process. From Linux 6.11 on the kernel finds them (PROCMAP_QUERY, in
/// Documentation/filesystems/proc.rst); before, all that proc_pid_maps(5) lists is read, which
/// takes a process with pandas a millisecond. Empty if neither can be had.
std::vector<SharedMapping> list_shared_mappings();

/// The second way alone, for tests.
std::vector<SharedMapping> read_shared_mappings();

}  // namespace cellkeep::kernels
