// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/zygote_memory.hpp"

#include "protocol/support/syscall.hpp"

#include <elf.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
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

struct OwnMapping {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    bool has_file = false;
};

/// Those that this process alone reads and writes (proc_pid_maps(5)), in the order of their
/// addresses.
std::vector<OwnMapping> list_own_mappings() {
    std::vector<OwnMapping> found;
    const auto maps = read_file("/proc/self/maps", kZygoteMapsBytesMax);
    std::istringstream in(maps.has_value() ? maps.value() : std::string());
    for (std::string line; found.size() < kZygoteMappingsMax && std::getline(in, line);) {
        OwnMapping mapping;
        std::array<char, 5> rights{};
        unsigned long inode = 0;
        if (std::sscanf(
                line.c_str(),
                "%lx-%lx %4s %*s %*s %lu",
                &mapping.begin,
                &mapping.end,
                rights.data(),
                &inode) == 4 &&
            std::string_view(rights.data()) == "rw-p") {
            mapping.has_file = inode != 0;
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
bool collapse(const OwnMapping& mapping, std::size_t page_bytes, Advise advise, std::size_t& made) {
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

/// Of a library: whole pages.
struct LibraryPart {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
};

/// What glibc's _dl_protect_relro has made read-only.
int add_read_only_data(dl_phdr_info* library, std::size_t /*size*/, void* into) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    for (int i = 0; i < library->dlpi_phnum; ++i) {
        const auto& segment = library->dlpi_phdr[i];
        if (segment.p_type == PT_GNU_RELRO) {
            const std::uintptr_t begin = library->dlpi_addr + segment.p_vaddr;
            const std::uintptr_t end = begin + segment.p_memsz;
            static_cast<std::vector<LibraryPart>*>(into)->push_back(
                {begin & ~(page - 1), end & ~(page - 1)});
        }
    }
    return 0;
}

/// Segments that lie side by side, in memory and in the file.
struct Segments {
    LibraryPart part;
    std::uintptr_t from_file = 0;  // what is added to an offset in the file
    bool has_code = false;
    bool has_constants = false;
};

int add_code_with_constants(dl_phdr_info* library, std::size_t /*size*/, void* into) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    std::vector<Segments> all;
    for (int i = 0; i < library->dlpi_phnum; ++i) {
        const auto& segment = library->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) {
            continue;
        }
        const std::uintptr_t address = library->dlpi_addr + segment.p_vaddr;
        const std::uintptr_t begin = address & ~(page - 1);
        const std::uintptr_t from_file = address - segment.p_offset;
        if (all.empty() || all.back().part.end != begin || all.back().from_file != from_file) {
            all.push_back({{begin, begin}, from_file});
        }
        Segments& last = all.back();
        last.part.end = (address + segment.p_memsz + page - 1) & ~(page - 1);
        last.has_code |= (segment.p_flags & PF_X) != 0;
        last.has_constants |= (segment.p_flags & PF_X) == 0;
    }
    for (const Segments& segments : all) {
        if (segments.has_code && segments.has_constants) {
            static_cast<std::vector<LibraryPart>*>(into)->push_back(segments.part);
        }
    }
    return 0;
}

/// Data that comes from the file and has zeros of the library's own behind it.
int add_data_before_zeros(dl_phdr_info* library, std::size_t /*size*/, void* into) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    for (int i = 0; i < library->dlpi_phnum; ++i) {
        const auto& segment = library->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0) {
            continue;
        }
        const std::uintptr_t address = library->dlpi_addr + segment.p_vaddr;
        const std::uintptr_t data_end = (address + segment.p_filesz + page - 1) & ~(page - 1);
        if (data_end < address + segment.p_memsz) {
            static_cast<std::vector<LibraryPart>*>(into)->push_back(
                {address & ~(page - 1), data_end});
        }
    }
    return 0;
}

bool has_one_thread() {
    struct stat threads {};
    constexpr nlink_t kOfTheDirectory = 2;  // its own and its parent's name for it
    return ::stat("/proc/self/task", &threads) == 0 && threads.st_nlink == kOfTheDirectory + 1;
}

/// Whether every page of it is in one of these.
bool is_covered(const LibraryPart& part, const std::vector<OwnMapping>& mappings) {
    std::uintptr_t known = part.begin;
    for (const OwnMapping& mapping : mappings) {
        if (mapping.begin <= known && known < mapping.end) {
            known = mapping.end;
        }
    }
    return known >= part.end;
}

/// Maps memory of no file in its place, with what was there. Nothing may write to the data from the
/// first copy on, and nothing may read it between the call and the end of the second copy, the C
/// library's data included: so these two are one block of instructions. Not memcpy(3): that of
/// AddressSanitizer refuses to read the gaps between variables. A refusal changes nothing; before
/// Linux 6.12 it may have taken the data away, if memory ran short at this moment.
bool replace([[maybe_unused]] const LibraryPart& part) {
#if defined(__x86_64__)
    const std::unique_ptr<char[]> saved(new (std::nothrow) char[part.end - part.begin]);
    if (!saved) {
        return false;
    }
    char* const from = saved.get();
    char* saved_to = from;
    std::uintptr_t saved_from = part.begin;
    std::size_t left = part.end - part.begin;
    asm volatile("rep movsb" : "+D"(saved_to), "+S"(saved_from), "+c"(left) : : "memory");
    long result = SYS_mmap;
    std::uintptr_t to = part.begin;
    std::size_t bytes = part.end - part.begin;
    long rights = PROT_READ | PROT_WRITE;
    register char* kept asm("r12") = from;
    register long flags asm("r10") = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    register long file asm("r8") = -1;
    register long offset asm("r9") = 0;
    asm volatile(
        "syscall\n\t"
        "test %%rax, %%rax\n\t"
        "js 1f\n\t"
        "mov %%rsi, %%rcx\n\t"
        "mov %%r12, %%rsi\n\t"
        "rep movsb\n\t"
        "1:"
        : "+a"(result), "+D"(to), "+S"(bytes), "+d"(rights)
        : "r"(kept), "r"(flags), "r"(file), "r"(offset)
        : "rcx", "r11", "cc", "memory");
    return result >= 0;
#else
    return false;
#endif
}

/// In how many libraries.
std::size_t protect_parts(
    int (*add)(dl_phdr_info* library, std::size_t size, void* into), int rights) {
    std::vector<LibraryPart> all;
    (void)::dl_iterate_phdr(add, &all);  // Ignored: the 0 of the functions above.
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const auto& part) {
        return part.begin < part.end &&
               ::mprotect(pointer_to(part.begin), part.end - part.begin, rights) == 0;
    }));
}

}  // namespace

std::size_t collapse_into_huge_pages(Advise advise) {
    const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::size_t made = 0;
    for (const OwnMapping& mapping : list_own_mappings()) {
        if (mapping.has_file || mapping.end - mapping.begin > kHeapMappingBytesMax) {
            continue;
        }
        if (!collapse(mapping, page_bytes, advise, made)) {
            break;
        }
    }
    return made;
}

std::size_t join_read_only_data() {
    return protect_parts(&add_read_only_data, PROT_READ | PROT_WRITE);
}

std::size_t join_code_with_constants() {
    return protect_parts(&add_code_with_constants, PROT_READ | PROT_EXEC);
}

std::size_t join_data_with_zeros() {
    std::vector<LibraryPart> all;
    (void)::dl_iterate_phdr(&add_data_before_zeros, &all);  // Ignored: the 0 of the function above.
    sigset_t every;
    sigset_t before;
    // A handler would find the data gone.
    if (!has_one_thread() || ::sigfillset(&every) < 0 ||
        ::pthread_sigmask(SIG_BLOCK, &every, &before) != 0) {
        return 0;
    }
    const std::vector<OwnMapping> mappings = list_own_mappings();
    const auto joined = std::count_if(all.begin(), all.end(), [&](const LibraryPart& part) {
        return is_covered(part, mappings) && replace(part);
    });
    // Ignored: it was in force before.
    (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return static_cast<std::size_t>(joined);
}

}  // namespace cellkeep::kernels
