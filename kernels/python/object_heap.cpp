// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/object_heap.hpp"

#include "kernels/common/arena_space.hpp"

#include <Python.h>

#include <pthread.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>

// What sys._debugmallocstats() prints (CPython, Objects/obmalloc.c); exported, but in no header for
// embedders.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" int _PyObject_DebugMallocStats(std::FILE* out);

namespace cellkeep::kernels::python {

namespace {

constexpr std::size_t kBlockBytesMax = 512;
/// Far above what a pool or all pools of a class have: a report that says more is not understood.
constexpr unsigned long kBlocksMax = 1'000'000;

std::string report() {
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* const file = ::open_memstream(&text, &size);
    if (file == nullptr) {
        return {};
    }
    (void)_PyObject_DebugMallocStats(file);  // Ignored: with another allocator the text is empty.
    (void)std::fclose(file);                 // Ignored: it is memory.
    const std::unique_ptr<char, decltype(&std::free)> owned(text, &std::free);
    return {text, size};
}

void take(std::size_t block_bytes, unsigned long count) {
    for (unsigned long i = 0; i < count; ++i) {
        // Never given back. Never null: there are at least this many free blocks.
        (void)PyObject_Malloc(block_bytes);
    }
}

/// "class size pools used free", as numbers; false for any other line.
bool read_class(const std::string& line, std::size_t& block_bytes, unsigned long& free_blocks) {
    std::istringstream fields(line);
    unsigned long number = 0;
    unsigned long pools = 0;
    unsigned long used = 0;
    std::string rest;
    return fields >> number >> block_bytes >> pools >> used >> free_blocks && !(fields >> rest) &&
           block_bytes <= kBlockBytesMax && free_blocks <= kBlocksMax;
}

/// Never destroyed: threads may use it until the end.
ArenaSpace& arena_space() {
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): it changes.
    static auto* const space = new ArenaSpace;
    return *space;
}

}  // namespace

void keep_arenas_together() {
    PyObjectArenaAllocator allocator{
        nullptr,
        [](void*, std::size_t bytes) { return arena_space().allocate(bytes); },
        [](void*, void* arena, std::size_t bytes) { arena_space().free(arena, bytes); }};
    // Interpreters with a lock each (PEP 684) call it from several threads. Ignored: it fails
    // without memory, and then Python does not start, either.
    (void)::pthread_atfork(
        [] { arena_space().lock(); },
        [] { arena_space().unlock(); },
        [] { arena_space().unlock(); });
    PyObject_SetArenaAllocator(&allocator);
}

void fill_object_gaps() {
    std::istringstream lines(report());
    std::string line;
    while (std::getline(lines, line)) {
        std::size_t block_bytes = 0;
        unsigned long free_blocks = 0;
        if (read_class(line, block_bytes, free_blocks)) {
            take(block_bytes, free_blocks);
        }
    }
}

}  // namespace cellkeep::kernels::python
