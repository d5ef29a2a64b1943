// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/cgroup_layout.hpp"

#include "sandbox/cgroup/cgroup_v2.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::sandbox {

TEST_CASE("a pure v2 host is understood") {
    const auto layout = parse_cgroup_layout(
        "0::/user.slice/user-1000.slice/session-3.scope\n",
        "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
    REQUIRE(layout.has_value());
    CHECK(layout.value().name() == "v2");
    CHECK(layout.value().unified == "/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope");
    CHECK(layout.value().unified_mount == "/sys/fs/cgroup");
    CHECK(layout.value().v1.empty());
}

TEST_CASE("a hybrid host is understood, with controllers that share a mount") {
    const auto layout = parse_cgroup_layout(
        "4:memory:/process/7\n1:cpu,cpuacct:/\n5:name=systemd:/init.scope\n0::/\n",
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:3 master:1 - cgroup cgroup "
        "rw,cpu,cpuacct\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    REQUIRE(layout.has_value());
    CHECK(layout.value().name() == "hybrid");
    CHECK(layout.value().unified == "/sys/fs/cgroup/unified");
    CHECK(layout.value().v1.at("memory") == "/sys/fs/cgroup/memory/process/7");
    CHECK(layout.value().v1.at("cpu") == "/sys/fs/cgroup/cpu,cpuacct");
    CHECK(layout.value().v1.at("cpuacct") == "/sys/fs/cgroup/cpu,cpuacct");
    CHECK_FALSE(layout.value().v1.contains("pids"));
}

TEST_CASE("a container sees its part of the tree, and nothing where it sees none of it") {
    const std::string mount =
        "30 23 0:26 /docker/abc /sys/fs/cgroup\\040dir rw - cgroup2 cgroup rw\n";
    CHECK(
        parse_cgroup_layout("0::/docker/abc/x\n", mount).value().unified == "/sys/fs/cgroup dir/x");
    CHECK(parse_cgroup_layout("0::/docker/abcdef\n", mount).value().unified.empty());
    CHECK(parse_cgroup_layout("0::/\n", mount).value().unified.empty());
    // Outside the cgroup namespace (cgroup_namespaces(7)).
    const std::string whole = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
    CHECK(parse_cgroup_layout("0::/../other\n", whole).value().unified.empty());
}

TEST_CASE("a host without cgroups has none") {
    const auto layout = parse_cgroup_layout("", "22 27 0:21 / /proc rw - proc proc rw\n");
    REQUIRE(layout.has_value());
    CHECK(layout.value().name() == "none");
}

TEST_CASE("lines of another form are refused") {
    const std::string mount = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
    for (const char* membership : {"x\n", "0:/\n", "0::\n", "0::relative\n", "memory\n"}) {
        INFO(membership);
        CHECK(parse_cgroup_layout(membership, mount).has_error());
    }
    for (const char* line :
         {"30\n",
          "30 23 0:26 / /sys rw\n",
          "- cgroup2 cgroup rw\n",
          "30 23 0:26 / /sys rw - cgroup2\n"}) {
        INFO(line);
        CHECK(parse_cgroup_layout("0::/\n", line).has_error());
    }
}

TEST_CASE("octal escapes are resolved, and only those") {
    CHECK(unescape_mount_path("/a\\040b\\134c") == "/a b\\c");
    CHECK(unescape_mount_path("/a\\04") == "/a\\04");
    CHECK(unescape_mount_path("/a\\049") == "/a\\049");
    CHECK(unescape_mount_path("\\").size() == 1);
}

TEST_CASE("a counter is read by its whole name") {
    const std::string events = "low 1\noom 2\noom_kill 3\noom_group_kill 4";
    CHECK(keyed_number(events, "oom") == 2);
    CHECK(keyed_number(events, "oom_kill") == 3);
    CHECK(keyed_number(events, "oom_group_kill") == 4);
    CHECK(keyed_number(events, "kill") == 0);
    CHECK(keyed_number(events, "missing") == 0);
    CHECK(keyed_number("", "oom") == 0);
    CHECK(keyed_number("oom x\n", "oom") == 0);
    CHECK(keyed_number("oom 99999999999999999999999\n", "oom") == 0);
}

}  // namespace cellkeep::sandbox
