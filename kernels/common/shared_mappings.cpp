// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/shared_mappings.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/shared/procmap_query.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace cellkeep::kernels {

namespace {

constexpr std::size_t kMapsBytesMax = 16UL << 20U;

/// nullopt: this kernel or the filter has no such call.
std::optional<std::vector<SharedMapping>> query_shared_mappings() {
    const UniqueFd maps(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
    if (!maps) {
        return std::nullopt;
    }
    std::vector<SharedMapping> found;
    sandbox::ProcmapQuery query;
    query.size = sizeof(query);
    query.query_flags =
        sandbox::kProcmapWritable | sandbox::kProcmapShared | sandbox::kProcmapCoveringOrNext;
    while (found.size() < kSharedMappingsMax) {
        if (::ioctl(maps.get(), sandbox::kProcmapQuery, &query) < 0) {
            return errno == ENOENT ? std::optional(found) : std::nullopt;
        }
        found.push_back(
            {static_cast<std::uintptr_t>(query.vma_start),
             static_cast<std::size_t>(query.vma_end - query.vma_start),
             PROT_WRITE | ((query.vma_flags & sandbox::kProcmapReadable) != 0 ? PROT_READ : 0) |
                 ((query.vma_flags & sandbox::kProcmapExecutable) != 0 ? PROT_EXEC : 0)});
        query.query_addr = query.vma_end;
    }
    return found;
}

}  // namespace

std::vector<SharedMapping> list_shared_mappings() {
    auto found = query_shared_mappings();
    return found ? std::move(*found) : read_shared_mappings();
}

std::vector<SharedMapping> read_shared_mappings() {
    std::vector<SharedMapping> found;
    const auto maps = read_file("/proc/self/maps", kMapsBytesMax);
    std::istringstream in(maps.has_value() ? maps.value() : std::string());
    for (std::string line; found.size() < kSharedMappingsMax && std::getline(in, line);) {
        unsigned long begin = 0;
        unsigned long end = 0;
        char rights[5]{};
        if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, rights) == 3 &&
            rights[1] == 'w' && rights[3] == 's') {
            found.push_back(
                {begin,
                 end - begin,
                 PROT_WRITE | (rights[0] == 'r' ? PROT_READ : 0) |
                     (rights[2] == 'x' ? PROT_EXEC : 0)});
        }
    }
    return found;
}

}  // namespace cellkeep::kernels
