// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/zygote_memory.hpp"

#include "protocol/support/syscall.hpp"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::kernels {

namespace {

constexpr std::size_t kZygoteMapsBytesMax = 16UL << 20U;
/// MADV_COLLAPSE (madvise(2)); Debian 12's <sys/mman.h> does not have it.
constexpr int kAdviceCollapse = 25;
constexpr std::size_t kHugePageBytes = 2UL << 20U;

/// An address that the kernel or the dynamic linker names.
void* pointer_to(std::uintptr_t address) {
    return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

struct HeapMapping {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
};

/// Those of no file that this process alone reads and writes (proc_pid_maps(5)).
std::vector<HeapMapping> list_heap_mappings() {
    std::vector<HeapMapping> found;
    const auto maps = read_file("/proc/self/maps", kZygoteMapsBytesMax);
    std::istringstream in(maps.has_value() ? maps.value() : std::string());
    for (std::string line; found.size() < kZygoteMappingsMax && std::getline(in, line);) {
        HeapMapping mapping;
        std::array<char, 5> rights{};
        unsigned long inode = 0;
        if (std::sscanf(
                line.c_str(),
                "%lx-%lx %4s %*s %*s %lu",
                &mapping.begin,
                &mapping.end,
                rights.data(),
                &inode) == 4 &&
            inode == 0 && std::string_view(rights.data()) == "rw-p" &&
            mapping.end - mapping.begin <= kHeapMappingBytesMax) {
            found.push_back(mapping);
        }
    }
    return found;
}

bool is_mostly_in_memory(void* begin, std::size_t page_bytes) {
    std::vector<unsigned char> pages(kHugePageBytes / page_bytes);
    if (::mincore(begin, kHugePageBytes, pages.data()) != 0) {
        return false;
    }
    const auto present =
        std::count_if(pages.begin(), pages.end(), [](auto page) { return (page & 1U) != 0; });
    return static_cast<std::size_t>(present) * page_bytes >=
           kPagesForHugeMin * (kHugePageBytes / 512);
}

/// False: the host has no such page to give now (madvise(2): ENOMEM; EBUSY of a cgroup).
bool collapse(
    const HeapMapping& mapping, std::size_t page_bytes, Advise advise, std::size_t& made) {
    const std::uintptr_t first = (mapping.begin + kHugePageBytes - 1) & ~(kHugePageBytes - 1);
    for (std::uintptr_t at = first; at + kHugePageBytes <= mapping.end; at += kHugePageBytes) {
        void* const place = pointer_to(at);
        if (!is_mostly_in_memory(place, page_bytes)) {
            continue;
        }
        if (advise(place, kHugePageBytes, kAdviceCollapse) == 0) {
            ++made;
        } else if (errno == ENOMEM || errno == EBUSY) {
            return false;
        }
    }
    return true;
}

/// What glibc's _dl_protect_relro has made read-only of a library: whole pages alone.
struct ReadOnlyData {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
};

int add_read_only_data(dl_phdr_info* library, std::size_t /*size*/, void* into) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    for (int i = 0; i < library->dlpi_phnum; ++i) {
        const auto& segment = library->dlpi_phdr[i];
        if (segment.p_type == PT_GNU_RELRO) {
            const std::uintptr_t begin = library->dlpi_addr + segment.p_vaddr;
            const std::uintptr_t end = begin + segment.p_memsz;
            static_cast<std::vector<ReadOnlyData>*>(into)->push_back(
                {begin & ~(page - 1), end & ~(page - 1)});
        }
    }
    return 0;
}

}  // namespace

std::size_t collapse_into_huge_pages(Advise advise) {
    const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::size_t made = 0;
    for (const HeapMapping& mapping : list_heap_mappings()) {
        if (!collapse(mapping, page_bytes, advise, made)) {
            break;
        }
    }
    return made;
}

std::size_t join_read_only_data() {
    std::vector<ReadOnlyData> all;
    (void)::dl_iterate_phdr(&add_read_only_data, &all);  // Ignored: the 0 of the function above.
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const auto& data) {
        return data.begin < data.end &&
               ::mprotect(pointer_to(data.begin), data.end - data.begin, PROT_READ | PROT_WRITE) ==
                   0;
    }));
}

}  // namespace cellkeep::kernels
