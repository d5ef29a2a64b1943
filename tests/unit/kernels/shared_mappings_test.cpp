// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/shared_mappings.hpp"

#include "protocol/support/unique_fd.hpp"

#include <catch2/catch.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cellkeep::kernels::test {
namespace {

constexpr std::size_t kPage = 4096;

class TestMapping {
 public:
    TestMapping(std::size_t pages, int protection, int kind, int fd = -1)
        : bytes_(pages * kPage),
          place_(::mmap(nullptr, bytes_, protection, kind | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0)) {
        REQUIRE(place_ != MAP_FAILED);
    }
    TestMapping(const TestMapping&) = delete;
    TestMapping& operator=(const TestMapping&) = delete;
    ~TestMapping() { (void)::munmap(place_, bytes_); }

    const SharedMapping* find_in(const std::vector<SharedMapping>& all) const {
        const auto begin = reinterpret_cast<std::uintptr_t>(place_);
        const auto found = std::find_if(all.begin(), all.end(), [begin](const SharedMapping& one) {
            return one.begin <= begin && begin < one.begin + one.bytes;
        });
        return found == all.end() ? nullptr : &*found;
    }

 private:
    std::size_t bytes_;
    void* place_;
};

bool are_equal(const std::vector<SharedMapping>& a, const std::vector<SharedMapping>& b) {
    return std::equal(
        a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
            return one.begin == other.begin && one.bytes == other.bytes &&
                   one.protection == other.protection;
        });
}

TEST_CASE("memory that is shared and can be written to is found", "[kernel][mappings]") {
    const UniqueFd file(::memfd_create("shared", MFD_CLOEXEC));
    REQUIRE(::ftruncate(file.get(), static_cast<off_t>(2 * kPage)) == 0);
    const TestMapping anonymous(3, PROT_READ | PROT_WRITE, MAP_SHARED);
    const TestMapping of_file(2, PROT_WRITE, MAP_SHARED, file.get());
    const auto found = list_shared_mappings();
    const SharedMapping* const first = anonymous.find_in(found);
    REQUIRE(first != nullptr);
    CHECK(first->bytes == 3 * kPage);
    CHECK(first->protection == (PROT_READ | PROT_WRITE));
    const SharedMapping* const second = of_file.find_in(found);
    REQUIRE(second != nullptr);
    CHECK(second->bytes == 2 * kPage);
    CHECK((second->protection & PROT_WRITE) != 0);
}

TEST_CASE("memory that is the process's own or only read is not", "[kernel][mappings]") {
    const UniqueFd file(::memfd_create("shared", MFD_CLOEXEC));
    REQUIRE(::ftruncate(file.get(), static_cast<off_t>(kPage)) == 0);
    const TestMapping own(1, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    const TestMapping own_of_file(1, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.get());
    const TestMapping only_read(1, PROT_READ, MAP_SHARED, file.get());
    const auto found = list_shared_mappings();
    CHECK(own.find_in(found) == nullptr);
    CHECK(own_of_file.find_in(found) == nullptr);
    CHECK(only_read.find_in(found) == nullptr);
}

TEST_CASE("the list of all mappings says the same as the kernel's search", "[kernel][mappings]") {
    const TestMapping one(1, PROT_READ | PROT_WRITE, MAP_SHARED);
    const TestMapping between(1, PROT_NONE, MAP_PRIVATE);
    const TestMapping other(5, PROT_READ | PROT_WRITE, MAP_SHARED);
    const auto listed = read_shared_mappings();
    CHECK(one.find_in(listed) != nullptr);
    CHECK(other.find_in(listed) != nullptr);
    CHECK(are_equal(list_shared_mappings(), listed));
}

}  // namespace
}  // namespace cellkeep::kernels::test
