// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/random_pool.hpp"

#include "protocol/support/syscall.hpp"
#include "protocol/support/unique_fd.hpp"

#include <catch2/catch.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <thread>
#include <vector>

using cellkeep::random_hex;
using cellkeep::RandomPool;
using cellkeep::secret_hex;
using cellkeep::UniqueFd;

namespace {

using Identifier = std::array<unsigned char, 16>;

Identifier take_identifier(RandomPool& pool) {
    Identifier bytes{};
    REQUIRE(pool.fill(bytes).has_value());
    return bytes;
}

/// What a forked child takes from its copy of the pool. It allocates nothing.
Identifier identifier_of_child(RandomPool& pool) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const UniqueFd reading(ends[0]);
    UniqueFd writing(ends[1]);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        Identifier bytes{};
        const bool taken = pool.fill(bytes).has_value();
        const ssize_t wrote = taken ? ::write(writing.get(), bytes.data(), bytes.size()) : -1;
        ::_exit(wrote == static_cast<ssize_t>(bytes.size()) ? 0 : 1);
    }
    writing.reset();
    Identifier bytes{};
    CHECK(::read(reading.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    return bytes;
}

}  // namespace

TEST_CASE("identifiers from a pool differ, over many refills", "[support][random]") {
    constexpr std::size_t kMany = 20'000;  // 320 kB: the pool is one page
    RandomPool pool;
    std::set<Identifier> seen;
    std::array<bool, 256> values{};
    for (std::size_t i = 0; i < kMany; ++i) {
        const Identifier one = take_identifier(pool);
        for (const unsigned char byte : one) {
            values.at(byte) = true;
        }
        seen.insert(one);
    }
    CHECK(seen.size() == kMany);
    CHECK(std::count(values.begin(), values.end(), true) == 256);
}

TEST_CASE(
    "every size up to the largest is filled whole, and none means none", "[support][random]") {
    RandomPool pool;
    for (std::size_t size = 0; size <= RandomPool::kBytesMax; ++size) {
        std::vector<unsigned char> first(size, 0);
        std::vector<unsigned char> second(size, 0);
        REQUIRE(pool.fill(first).has_value());
        REQUIRE(pool.fill(second).has_value());
        CHECK((size < 8 || first != second));
        // A byte that was left out would be zero in eight tries with probability 2^-64.
        if (size > 0) {
            bool last_set = false;
            for (int i = 0; i < 8; ++i) {
                REQUIRE(pool.fill(first).has_value());
                last_set = last_set || first.back() != 0;
            }
            CHECK(last_set);
        }
    }
}

TEST_CASE("a forked child does not give out what its parent does", "[support][random]") {
    RandomPool pool;
    (void)take_identifier(pool);  // the page is full of bytes that a plain copy would share
    const Identifier first = identifier_of_child(pool);
    const Identifier second = identifier_of_child(pool);
    const Identifier own = take_identifier(pool);
    CHECK(first != own);
    CHECK(second != own);
    CHECK(first != second);
}

TEST_CASE("threads have pools of their own", "[support][random]") {
    std::array<std::vector<std::string>, 4> taken;
    std::vector<std::thread> threads;
    threads.reserve(taken.size());
    for (auto& one : taken) {
        threads.emplace_back([&one] {
            for (int i = 0; i < 1000; ++i) {
                one.push_back(random_hex(12).value());
            }
        });
    }
    std::set<std::string> all;
    for (std::size_t i = 0; i < threads.size(); ++i) {
        threads[i].join();
        all.insert(taken.at(i).begin(), taken.at(i).end());
    }
    CHECK(all.size() == 4000);
}

TEST_CASE("a secret has the form of an identifier and differs", "[support][random]") {
    const auto first = secret_hex(32);
    const auto second = secret_hex(32);
    REQUIRE(first.has_value());
    REQUIRE(second.has_value());
    CHECK(first.value().size() == 64);
    CHECK(first.value().find_first_not_of("0123456789abcdef") == std::string::npos);
    CHECK(first.value() != second.value());
    CHECK(secret_hex(0).value().empty());
}
