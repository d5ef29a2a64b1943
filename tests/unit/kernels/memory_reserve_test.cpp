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

using cellkeep::kernels::kMemoryReserveBytes;
using cellkeep::kernels::MemoryReserve;

namespace {

constexpr std::size_t kLargePiece = kMemoryReserveBytes / 2;

bool can_map(std::size_t bytes) {
    void* const piece =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return piece != MAP_FAILED && ::munmap(piece, bytes) == 0;
}

/// Takes all that the limit leaves.
void use_up() {
    const rlimit all{1UL << 30U, 1UL << 30U};
    if (::setrlimit(RLIMIT_DATA, &all) != 0) {
        ::_exit(10);
    }
    for (std::size_t bytes = 1UL << 29U; bytes >= 4096; bytes /= 2) {
        while (::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
               MAP_FAILED) {
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
              if (!reserve.is_held() || can_map(kLargePiece)) {
                  return 1;
              }
              reserve.release();
              return !reserve.is_held() && can_map(kLargePiece) ? 0 : 2;
          }) == 0);
}

TEST_CASE("nothing is held where there is no room, and later there is", "[kernels][memory]") {
    CHECK(status_of([] {
              MemoryReserve first;
              MemoryReserve second;
              first.hold();
              use_up();
              second.hold();
              if (second.is_held()) {
                  return 1;
              }
              second.release();
              first.release();
              second.hold();
              return second.is_held() && !can_map(kLargePiece) ? 0 : 2;
          }) == 0);
}

TEST_CASE("it is held once, and let go with its owner", "[kernels][memory]") {
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
