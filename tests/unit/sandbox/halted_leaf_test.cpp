// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/halted_leaf.hpp"

#include "tests/unit/sandbox/fake_cgroup.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::sandbox {
namespace {

TEST_CASE("a leaf is halted, and killed when it stands still", "[sandbox][cgroup]") {
    const FakeCgroup cgroup;
    CHECK(HaltedLeaf::begin(cgroup.path()).has_error());  // Linux before 5.14
    cgroup.offer("cgroup.freeze");
    cgroup.offer("cgroup.kill");
    cgroup.offer("cgroup.procs");
    cgroup.put("cgroup.events", "populated 1\nfrozen 0\n");
    auto begun = HaltedLeaf::begin(cgroup.path());
    REQUIRE(begun.has_value());
    std::optional<HaltedLeaf> leaf(std::move(begun).value());
    CHECK(cgroup.get("cgroup.freeze") == "1");
    CHECK_FALSE(leaf->is_still());
    CHECK(cgroup.get("cgroup.kill").empty());
    SECTION("then what comes later may run") {
        REQUIRE(leaf->kill().has_value());
        CHECK(cgroup.get("cgroup.kill") == "1");
        CHECK(cgroup.get("cgroup.freeze") == "0");
        CHECK_FALSE(leaf->is_empty());
        cgroup.put("cgroup.freeze", "1");  // somebody else's
        leaf.reset();
        CHECK(cgroup.get("cgroup.freeze") == "1");
    }
    SECTION("what may not go on is killed in the end") {
        leaf->seal();
        leaf.reset();
        CHECK(cgroup.get("cgroup.kill") == "1");
        CHECK(cgroup.get("cgroup.freeze") == "0");
    }
    SECTION("without a kill all go on") {
        leaf.reset();
        CHECK(cgroup.get("cgroup.freeze") == "0");
        CHECK(cgroup.get("cgroup.kill").empty());
    }
}

TEST_CASE("each process of a leaf gets its SIGKILL", "[sandbox][cgroup]") {
    const FakeCgroup cgroup;
    cgroup.offer("cgroup.freeze");
    cgroup.offer("cgroup.kill");
    cgroup.put("cgroup.events", "populated 1\nfrozen 1\n");
    // The kernel's own kill, which is a file here, passes over those whose first thread has ended.
    std::vector<pid_t> children;
    std::string list;
    for (int i = 0; i < 100; ++i) {  // more than are held at once
        children.push_back(::fork());
        if (children.back() == 0) {
            while (true) {
                (void)::pause();
            }
        }
        REQUIRE(children.back() > 0);
        list += std::to_string(children.back()) + "\n";
    }
    cgroup.put("cgroup.procs", list);
    auto leaf = HaltedLeaf::begin(cgroup.path());
    REQUIRE(leaf.has_value());
    REQUIRE(leaf.value().kill().has_value());
    for (const pid_t child : children) {
        int status = 0;
        REQUIRE(::kill(child, SIGUSR1) == 0);  // or the test would wait for ever
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(WTERMSIG(status) == SIGKILL);
    }
}

TEST_CASE("a halted leaf says what its cgroup says", "[sandbox][cgroup]") {
    const FakeCgroup cgroup;
    cgroup.offer("cgroup.freeze");
    cgroup.offer("cgroup.kill");
    cgroup.offer("cgroup.procs");
    cgroup.put("cgroup.events", "populated 0\nfrozen 1\n");
    const auto leaf = HaltedLeaf::begin(cgroup.path());
    REQUIRE(leaf.has_value());
    CHECK(leaf.value().is_still());
    CHECK(leaf.value().is_empty());
    CHECK(leaf.value().events_fd() >= 0);
}

}  // namespace
}  // namespace cellkeep::sandbox
