// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/counter_file.hpp"

#include "protocol/support/syscall.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>

namespace cellkeep::sandbox {

TEST_CASE("a counter file is opened once and read anew each time", "[sandbox][cgroup]") {
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() + "/counters";
    CounterFile file;
    CHECK(file.number(path) == 0);  // not there yet
    REQUIRE(write_file_atomically(path, "17\n", 0600));
    CHECK(file.number(path) == 17);
    REQUIRE(write_control_file(path, "18\n"));
    CHECK(file.number(path) == 18);
    // Its name may lead to another file by then.
    REQUIRE(::unlink(path.c_str()) == 0);
    CHECK(file.number(path) == 18);
}

TEST_CASE("a counter that cannot be read is none, and not 0", "[sandbox][cgroup]") {
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() + "/counters";
    CounterFile file;
    CHECK_FALSE(file.find_number(path).has_value());
    CHECK_FALSE(file.find_keyed(path, "usage_usec").has_value());
    REQUIRE(write_file_atomically(path, "0\nusage_usec 0\n", 0600));
    CHECK(file.find_number(path) == 0U);
    CHECK(file.find_keyed(path, "usage_usec") == 0U);
    CHECK_FALSE(file.find_keyed(path, "user_usec").has_value());
    for (const char* text : {"", "x", "usage_usec", "usage_usec x"}) {
        CAPTURE(text);
        REQUIRE(write_file_atomically(path, text, 0600));
        file.close();
        CHECK_FALSE(file.find_number(path).has_value());
        CHECK_FALSE(file.find_keyed(path, "usage_usec").has_value());
    }
}

TEST_CASE("a counter is opened again after a read that failed", "[sandbox][cgroup]") {
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() + "/counters";
    REQUIRE(::mkdir(path.c_str(), 0700) == 0);  // opens, and cannot be read (EISDIR)
    CounterFile file;
    CHECK_FALSE(file.find_number(path).has_value());
    REQUIRE(::rmdir(path.c_str()) == 0);
    REQUIRE(write_file_atomically(path, "19\n", 0600));
    CHECK(file.find_number(path) == 19U);
}

TEST_CASE("a key's number is the one on its line", "[sandbox][cgroup]") {
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() + "/events";
    REQUIRE(write_file_atomically(path, "low 1\noom 2\noom_kill 3\n", 0600));
    CounterFile file;
    CHECK(file.keyed(path, "oom_kill") == 3);
    CHECK(file.keyed(path, "oom") == 2);
    CHECK(file.keyed(path, "max") == 0);
    CHECK(file.number(path) == 0);  // "low" is none
}

}  // namespace cellkeep::sandbox
