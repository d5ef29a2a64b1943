// SPDX-License-Identifier: Apache-2.0
//
// What a process whose data is limited can still have. In a process of its own, because of the
// limit.
#include "kernels/common/memory_reserve.hpp"

#include <catch2/catch.hpp>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

using cellkeep::kernels::kMemoryReserveBytes;
using cellkeep::kernels::kMemoryReserveBytesMin;
using cellkeep::kernels::MemoryReserve;

namespace {

constexpr std::size_t kLargePiece = kMemoryReserveBytes / 2;

void* map_piece(std::size_t bytes) {
    return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

bool can_map(std::size_t bytes) {
    void* const piece = map_piece(bytes);
    return piece != MAP_FAILED && ::munmap(piece, bytes) == 0;
}

/// What counts against RLIMIT_DATA: data and stack (proc_pid_statm(5)), and a sanitizer's own
/// memory.
std::size_t data_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::size_t pages = 0;
    for (int field = 0; field < 6; ++field) {
        statm >> pages;
    }
    return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// Limits the data to little more than there is, and takes all of that.
void use_up() {
    const std::size_t bytes_max = data_bytes() + (64UL << 20U);
    const rlimit all{bytes_max, bytes_max};
    if (::setrlimit(RLIMIT_DATA, &all) != 0) {
        ::_exit(10);
    }
    for (std::size_t bytes = 32UL << 20U; bytes >= 4096; bytes /= 2) {
        while (map_piece(bytes) != MAP_FAILED) {
        }
    }
}

/// The exit status of a process that does this.
template <typename Body>
int status_of(const Body& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(body());
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("what is held is there when all else is used up", "[kernels][memory]") {
    CHECK(status_of([] {
              MemoryReserve reserve;
              reserve.hold();
              use_up();
              if (reserve.bytes() != kMemoryReserveBytes || can_map(kLargePiece)) {
                  return 1;
              }
              reserve.release();
              return reserve.bytes() == 0 && can_map(kLargePiece) ? 0 : 2;
          }) == 0);
}

TEST_CASE("nothing is held where there is no room, and later there is", "[kernels][memory]") {
    CHECK(status_of([] {
              MemoryReserve first;
              MemoryReserve second;
              first.hold();
              use_up();
              second.hold();
              if (second.bytes() != 0) {
                  return 1;
              }
              second.release();
              first.release();
              second.hold();
              return second.bytes() == kMemoryReserveBytes && !can_map(kLargePiece) ? 0 : 2;
          }) == 0);
}

TEST_CASE("less is held where there is room for less", "[kernels][memory]") {
    CHECK(status_of([] {
              void* const room = map_piece(kMemoryReserveBytes / 2);
              void* const little = map_piece(kMemoryReserveBytesMin / 2);
              use_up();
              MemoryReserve reserve;
              (void)::munmap(little, kMemoryReserveBytesMin / 2);  // Ignored: it is ours.
              reserve.hold();
              if (reserve.bytes() != 0) {
                  return 1;
              }
              (void)::munmap(room, kMemoryReserveBytes / 2);
              reserve.hold();
              return reserve.bytes() == kMemoryReserveBytes / 2 ? 0 : 2;
          }) == 0);
}

TEST_CASE("it is held once, and given back with its owner", "[kernels][memory]") {
    CHECK(status_of([] {
              {
                  MemoryReserve reserve;
                  reserve.hold();
                  use_up();
                  reserve.hold();
                  reserve.release();
                  reserve.release();
                  if (!can_map(kLargePiece)) {
                      return 1;
                  }
                  reserve.hold();
                  if (can_map(kLargePiece)) {
                      return 2;
                  }
              }
              return can_map(kLargePiece) ? 0 : 3;
          }) == 0);
}
