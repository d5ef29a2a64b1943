// SPDX-License-Identifier: Apache-2.0
//
// Where arenas lie, and what becomes of their memory; by maps and mincore of this process.
#include "kernels/common/arena_space.hpp"

#include <catch2/catch.hpp>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

using cellkeep::kernels::ArenaSpace;
using cellkeep::kernels::kArenaBytes;

namespace {

constexpr std::size_t kPair = 2 * kArenaBytes;

std::uintptr_t address_of_arena(const void* arena) {
    return reinterpret_cast<std::uintptr_t>(arena);
}

/// The mapping that an address is in: its rights; bytes is its size.
std::string mapping_of_arena(const void* arena, std::size_t& bytes) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
        char rights[5]{};
        if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, rights) == 3 &&
            begin <= address_of_arena(arena) && address_of_arena(arena) < end) {
            bytes = end - begin;
            return rights;
        }
    }
    bytes = 0;
    return {};
}

std::string rights_of_arena(const void* arena) {
    std::size_t bytes = 0;
    return mapping_of_arena(arena, bytes);
}

std::size_t pages_in_memory(void* arena) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> pages(kArenaBytes / page);
    REQUIRE(::mincore(arena, kArenaBytes, pages.data()) == 0);
    std::size_t count = 0;
    for (const unsigned char one : pages) {
        count += one & 1U;
    }
    return count;
}

}  // namespace

TEST_CASE("arenas lie side by side in one mapping, from a huge page on", "[kernels][heap]") {
    ArenaSpace space;
    std::vector<char*> arenas;
    for (std::size_t i = 0; i < 40; ++i) {
        arenas.push_back(static_cast<char*>(space.allocate(kArenaBytes)));
        REQUIRE(arenas.back() != nullptr);
        std::memset(arenas.back(), static_cast<int>(i), kArenaBytes);
        CHECK(arenas.back() == arenas.front() + i * kArenaBytes);
    }
    CHECK(address_of_arena(arenas.front()) % kPair == 0);
    std::size_t bytes = 0;
    CHECK(mapping_of_arena(arenas.front(), bytes) == "rw-p");
    CHECK(bytes >= 40 * kArenaBytes);
    for (std::size_t i = 0; i < 40; ++i) {
        CHECK(arenas[i][kArenaBytes - 1] == static_cast<char>(i));
    }
}

TEST_CASE("what is given is the system's again, and the first that is taken", "[kernels][heap]") {
    ArenaSpace space;
    void* const one = space.allocate(kArenaBytes);
    void* const two = space.allocate(kArenaBytes);
    void* const three = space.allocate(kArenaBytes);
    for (void* const arena : {one, two, three}) {
        std::memset(arena, 1, kArenaBytes);
    }
    space.free(one, kArenaBytes);
    CHECK(pages_in_memory(one) == 0);
    CHECK(pages_in_memory(two) > 0);
    CHECK(rights_of_arena(one) == "rw-p");  // as long as the other half of its huge page is used
    space.free(two, kArenaBytes);
    CHECK(rights_of_arena(one) == "---p");
    CHECK(rights_of_arena(two) == "---p");
    CHECK(rights_of_arena(three) == "rw-p");
    CHECK(space.allocate(kArenaBytes) == one);
    CHECK(static_cast<char*>(one)[5] == 0);
    CHECK(space.allocate(kArenaBytes) == two);
    CHECK(static_cast<char*>(three)[5] == 1);
}

TEST_CASE("what does not fit has a mapping of its own", "[kernels][heap]") {
    ArenaSpace space(kPair);
    void* const one = space.allocate(kArenaBytes);
    void* const two = space.allocate(kArenaBytes);
    void* const beyond = space.allocate(kArenaBytes);
    REQUIRE(beyond != nullptr);
    CHECK((beyond < one || beyond > two));
    std::memset(beyond, 1, kArenaBytes);
    void* const small = space.allocate(4096);  // another size
    REQUIRE(small != nullptr);
    CHECK((small < one || address_of_arena(small) >= address_of_arena(one) + kPair));
    std::memset(small, 1, 4096);
    space.free(beyond, kArenaBytes);
    CHECK(rights_of_arena(beyond) != "rw-p");
    space.free(small, 4096);
    space.free(one, kArenaBytes);
    CHECK(space.allocate(kArenaBytes) == one);
}

TEST_CASE("a mapping that somebody else made can be given", "[kernels][heap]") {
    ArenaSpace space;
    void* const other =
        ::mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(other != MAP_FAILED);
    SECTION("before any is taken") {}
    SECTION("afterwards") {
        REQUIRE(space.allocate(kArenaBytes) != nullptr);
    }
    space.free(other, kArenaBytes);
    CHECK(rights_of_arena(other) != "rw-p");
}

TEST_CASE("where the system has no memory there is none, and later there is", "[kernels][heap]") {
    // In a process of its own, because of the limit.
    const pid_t child = ::fork();
    if (child == 0) {
        ArenaSpace space;
        void* const first = space.allocate(kArenaBytes);
        void* const second = space.allocate(kArenaBytes);
        rlimit before{};
        const bool known = ::getrlimit(RLIMIT_DATA, &before) == 0;
        const rlimit none{4096, before.rlim_max};
        if (!known || first == nullptr || second == nullptr ||
            ::setrlimit(RLIMIT_DATA, &none) != 0) {
            ::_exit(1);
        }
        void* const refused = space.allocate(kArenaBytes);
        const bool again = ::setrlimit(RLIMIT_DATA, &before) == 0;
        void* const third = space.allocate(kArenaBytes);
        const bool right = third == static_cast<char*>(second) + kArenaBytes;
        ::_exit(refused == nullptr && again && right ? 0 : 2);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

TEST_CASE("a system without such a range gives each a mapping of its own", "[kernels][heap]") {
    ArenaSpace space(1UL << 60U);
    void* const one = space.allocate(kArenaBytes);
    REQUIRE(one != nullptr);
    std::memset(one, 1, kArenaBytes);
    space.free(one, kArenaBytes);
    CHECK(rights_of_arena(one) != "rw-p");
}

TEST_CASE("threads are given different arenas", "[kernels][heap]") {
    ArenaSpace space;
    std::vector<std::vector<void*>> taken(4);
    std::vector<std::thread> threads;
    threads.reserve(taken.size());
    for (auto& mine : taken) {
        threads.emplace_back([&space, &mine] {
            for (int i = 0; i < 50; ++i) {
                mine.push_back(space.allocate(kArenaBytes));
                std::memset(mine.back(), 1, 4096);
                if (i % 3 == 0) {
                    space.free(mine.back(), kArenaBytes);
                    mine.pop_back();
                }
            }
        });
    }
    std::set<void*> all;
    std::size_t count = 0;
    for (std::size_t i = 0; i < threads.size(); ++i) {
        threads[i].join();
        all.insert(taken[i].begin(), taken[i].end());
        count += taken[i].size();
    }
    CHECK(all.size() == count);
    CHECK(all.count(nullptr) == 0);
}

TEST_CASE("a fork goes on with what it has, whatever another thread does", "[kernels][heap]") {
    ArenaSpace space;
    char* const one = static_cast<char*>(space.allocate(kArenaBytes));
    std::memset(one, 7, kArenaBytes);
    std::atomic<bool> ends{false};
    std::thread other([&] {
        while (!ends) {
            space.free(space.allocate(kArenaBytes), kArenaBytes);
        }
    });
    for (int i = 0; i < 200; ++i) {
        space.lock();
        const pid_t child = ::fork();
        space.unlock();
        if (child == 0) {
            (void)::alarm(30);  // else one that cannot go on would wait for ever
            char* const mine = static_cast<char*>(space.allocate(kArenaBytes));
            mine[5] = 1;
            space.free(one, kArenaBytes);
            ::_exit(mine != one && space.allocate(kArenaBytes) == one ? 0 : 1);
        }
        int status = -1;
        REQUIRE(::waitpid(child, &status, 0) == child);
        REQUIRE(status == 0);
    }
    ends = true;
    other.join();
    CHECK(one[5] == 7);
}
