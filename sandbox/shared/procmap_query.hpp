// SPDX-License-Identifier: Apache-2.0
//
// The call that finds a mapping of a process without a list of all of them (PROCMAP_QUERY, Linux
// 6.11, Documentation/filesystems/proc.rst). Debian 12's <linux/fs.h> does not have it. Values.
#pragma once

#include <sys/ioctl.h>

#include <cstdint>

namespace cellkeep::sandbox {

/// struct procmap_query.
struct ProcmapQuery {
    std::uint64_t size = 0;
    std::uint64_t query_flags = 0;
    std::uint64_t query_addr = 0;
    std::uint64_t vma_start = 0;
    std::uint64_t vma_end = 0;
    std::uint64_t vma_flags = 0;
    std::uint64_t vma_page_size = 0;
    std::uint64_t vma_offset = 0;
    std::uint64_t inode = 0;
    std::uint32_t dev_major = 0;
    std::uint32_t dev_minor = 0;
    std::uint32_t vma_name_size = 0;
    std::uint32_t build_id_size = 0;
    std::uint64_t vma_name_addr = 0;
    std::uint64_t build_id_addr = 0;
};
static_assert(sizeof(ProcmapQuery) == 104);
inline constexpr unsigned long kProcmapQuery = _IOWR('f', 17, ProcmapQuery);

/// PROCMAP_QUERY_VMA_* and PROCMAP_QUERY_COVERING_OR_NEXT_VMA.
inline constexpr std::uint64_t kProcmapReadable = 0x01;
inline constexpr std::uint64_t kProcmapWritable = 0x02;
inline constexpr std::uint64_t kProcmapExecutable = 0x04;
inline constexpr std::uint64_t kProcmapShared = 0x08;
inline constexpr std::uint64_t kProcmapCoveringOrNext = 0x10;

}  // namespace cellkeep::sandbox
