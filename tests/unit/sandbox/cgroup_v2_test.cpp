// SPDX-License-Identifier: Apache-2.0
//
// Where in a v2 tree a session goes, over a tree of plain files that looks like one. Writing to
// cgroup.subtree_control fails there exactly where the file is missing.
#include "sandbox/cgroup/cgroup_v2.hpp"

#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace cellkeep::sandbox {

namespace {

using Controllers = std::set<std::string, std::less<>>;

constexpr const char* kServer = "cellkeep-1-2";

void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
}

struct FakeTree {
    test::TemporaryDirectory root;
    CgroupLayout layout;

    explicit FakeTree(const std::string& own) {
        layout.unified_mount = root.path();
        layout.unified = root.path() + own;
        std::filesystem::create_directories(layout.unified);
    }
    void controllers(const std::string& cgroup, const std::string& names) const {
        write(root.path() + cgroup + "/cgroup.controllers", names);
    }
    void may_enable(const std::string& cgroup) const {
        write(root.path() + cgroup + "/cgroup.subtree_control", "");
    }
    /// Makes it a cgroup below the root that holds processes.
    void populate(const std::string& cgroup) const {
        write(root.path() + cgroup + "/cgroup.type", "domain\n");
        write(root.path() + cgroup + "/cgroup.procs", "1\n2\n");
    }
    bool untouched(const std::string& cgroup) const {
        return std::filesystem::file_size(root.path() + cgroup + "/cgroup.subtree_control") == 0;
    }
    bool has(const std::string& path) const { return std::filesystem::exists(root.path() + path); }
};

}  // namespace

TEST_CASE("in a tree without the wanted controllers no process is moved") {
    // A hybrid host: v2 may still have others.
    FakeTree tree("");
    tree.controllers("", "hugetlb misc\n");
    tree.may_enable("");
    write(tree.root.path() + "/cgroup.procs", "1\n2\n");
    const V2Place place = find_v2_place(tree.layout, kServer, /*privileged=*/true);
    CHECK(tree.untouched(""));
    CHECK(place.base == tree.layout.unified);
    CHECK(place.controllers.empty());
    CHECK_FALSE(tree.has(std::string("/") + kServer));
}

TEST_CASE("a cgroup that may hand out controllers is the place") {
    FakeTree tree("/service");
    tree.controllers("/service", "cpuset cpu io memory pids\n");
    tree.may_enable("/service");
    const V2Place place = find_v2_place(tree.layout, kServer, /*privileged=*/false);
    CHECK(place.base == tree.layout.unified);
    CHECK(place.controllers == Controllers{"cpu", "memory", "pids"});
    CHECK_FALSE(tree.has(std::string("/service/") + kServer));
}

TEST_CASE("a server that stepped aside before finds its place again") {
    FakeTree tree(std::string("/service/") + kServer + "/server");
    tree.controllers("/service", "memory pids\n");
    tree.may_enable("/service");
    const V2Place place = find_v2_place(tree.layout, kServer, /*privileged=*/false);
    CHECK(place.base == tree.root.path() + "/service");
    CHECK(place.controllers == Controllers{"memory", "pids"});
}

TEST_CASE("root in a login scope goes to the root of the tree and moves no process") {
    FakeTree tree("/user.slice/session-1.scope");
    tree.controllers("/user.slice/session-1.scope", "memory pids cpu\n");
    tree.controllers("", "memory pids cpu\n");
    tree.may_enable("");
    tree.populate("/user.slice/session-1.scope");
    tree.may_enable("/user.slice/session-1.scope");
    const V2Place place = find_v2_place(tree.layout, kServer, /*privileged=*/true);
    CHECK(tree.untouched("/user.slice/session-1.scope"));
    CHECK(place.base == tree.root.path());
    CHECK(place.controllers == Controllers{"cpu", "memory", "pids"});
    CHECK_FALSE(tree.has(std::string("/user.slice/session-1.scope/") + kServer));
}

TEST_CASE("an ordinary user in a delegated scope makes its processes step aside") {
    FakeTree tree("/scope");
    tree.controllers("/scope", "memory pids\n");
    tree.populate("/scope");
    tree.may_enable("/scope");
    // On this tree of plain files the processes stay, so that nothing may be enabled.
    const V2Place place = find_v2_place(tree.layout, kServer, /*privileged=*/false);
    CHECK(tree.untouched("/scope"));
    CHECK(tree.has(std::string("/scope/") + kServer + "/server"));
    CHECK(place.base == tree.layout.unified);
    CHECK(place.controllers.empty());
}

TEST_CASE("no v2 tree is no place") {
    const V2Place place = find_v2_place(CgroupLayout(), kServer, /*privileged=*/true);
    CHECK(place.base.empty());
    CHECK(place.controllers.empty());
}

TEST_CASE("waiting for a cgroup's event ends at once, in time, or with the file") {
    const test::TemporaryDirectory directory;
    CHECK(wait_for_cgroup_event(directory.path(), "populated 0", std::chrono::milliseconds(0))
              .has_error());
    write(directory.path() + "/cgroup.events", "populated 1\nfrozen 0\n");
    CHECK(wait_for_cgroup_event(directory.path(), "populated 1", std::chrono::milliseconds(0))
              .has_value());
    const auto late =
        wait_for_cgroup_event(directory.path(), "populated 0", std::chrono::milliseconds(5));
    REQUIRE(late.has_error());
    CHECK(late.error().code() == ErrorCode::kTimeout);
}

}  // namespace cellkeep::sandbox
