// SPDX-License-Identifier: Apache-2.0
//
// Prepares the mappings of a zygote for its forks, and theirs for their own (checkpoints,
// branches). fork(2) copies each mapping, and of those with memory of the process's own each page's
// entry. Both also end one by one with the process. Fewer and larger ones cost less.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace cellkeep::kernels {

/// Of what is put into one huge page, this many of 512 pages have to be in memory already: what
/// the rest takes is all that it costs.
inline constexpr std::size_t kPagesForHugeMin = 384;
/// Mappings that are looked at; what is beyond stays as it is.
inline constexpr std::size_t kZygoteMappingsMax = 4096;
/// A larger mapping is reserved rather than used, and stays as it is: to look at each of its pieces
/// would take long.
inline constexpr std::size_t kHeapMappingBytesMax = 4UL << 30U;

using Advise = int (*)(void* begin, std::size_t bytes, int advice);

/// Puts the pages of heaps and anonymous mappings into transparent huge pages (madvise(2),
/// MADV_COLLAPSE), where Linux has that (6.1) and has such pages free. Forks share them, and copy
/// single pages of them as they write. Returns how many were made. Ends when the host has no such
/// page to give: for each one that is asked for, Linux would look for room anew, which may take
/// long. `advise` is madvise(2), or what a test has for it. One thread.
std::size_t collapse_into_huge_pages(Advise advise = &::madvise);

/// Makes the data writable again that the dynamic linker has made read-only in each library
/// (PT_GNU_RELRO, elf(5)). Linux then joins its mapping with that of the library's other data. What
/// runs in this process could do so itself, so nothing is less safe. Returns in how many libraries.
/// One thread, and before the first fork: afterwards Linux keeps the mappings apart.
std::size_t join_read_only_data();

/// Makes what lies beside the code of each library, and cannot be written to, executable as well
/// (PT_LOAD, elf(5)): its tables before the code, and its constants behind it. Linux then joins the
/// three mappings. Returns in how many libraries. What is said above of safety holds here, too.
std::size_t join_code_with_constants();

/// Moves each library's initialised data into anonymous memory at the same address, if zeros of the
/// library's own are behind it (PT_LOAD, elf(5)). Linux then joins the two mappings, and with them
/// memory of the heaps that lies beside. Leaves out a library whose data is partly read-only: so
/// call join_read_only_data() first. Returns in how many libraries. Does nothing on other
/// processors than x86-64, or if this process has other threads. Before the first fork.
std::size_t join_data_with_zeros();

}  // namespace cellkeep::kernels
