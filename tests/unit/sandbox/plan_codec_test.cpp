// SPDX-License-Identifier: Apache-2.0
#include "sandbox/shared/plan_codec.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::sandbox {

namespace {

Plan sample_plan() {
    Plan plan;
    plan.privileged = true;
    plan.host_uid = 1234;
    plan.host_gid = 0xffff'fffe;
    plan.zygote = true;
    plan.first_id = 900'000;
    plan.id_count = 65'536;
    plan.nested = true;
    plan.waived = 5;
    plan.enter_network = true;
    plan.make_listener = true;
    plan.hostname = "host";
    plan.cgroup_procs = {"/sys/fs/cgroup/a/cgroup.procs", ""};
    plan.worker_procs = "/sys/fs/cgroup/a/workers/cgroup.procs";
    plan.read_only = {
        {"/usr", "/usr", true, false, false, "/srv/over/usr"},
        {"/data", "/opt/data", false, true, false},
        {"/in", "/workspace/in", false, false, true}};
    plan.tmpfs = {{"/workspace", "size=1", true}};
    plan.links = {{"/bin", "usr/bin"}};
    plan.files = {{"/etc/passwd", std::string("a\0b", 3)}};
    plan.rlimits = {{4, ~0ULL}};
    plan.worker_open_files = 1024;
    plan.seccomp = std::string(16, '\x80');
    return plan;
}

}  // namespace

TEST_CASE("a plan survives the way through its bytes") {
    CHECK(decode_plan(encode_plan(sample_plan()).value()) == sample_plan());
    CHECK(decode_plan(encode_plan(Plan()).value()) == Plan());
}

TEST_CASE("every prefix of a plan is refused, and so is one byte too many") {
    const std::string bytes = encode_plan(sample_plan()).value();
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        INFO(size);
        CHECK_FALSE(decode_plan(bytes.substr(0, size)));
    }
    CHECK_FALSE(decode_plan(bytes + '\0'));
}

TEST_CASE("bytes that are no plan are refused") {
    const std::string bytes = encode_plan(sample_plan()).value();
    std::string changed = bytes;
    changed[0] = 'X';
    CHECK_FALSE(decode_plan(changed));  // the magic
    changed = bytes;
    changed[8] = 2;
    CHECK_FALSE(decode_plan(changed));  // a flag that is neither 0 nor 1
    // The host name's length, right after the magic and twelve flags and numbers.
    constexpr std::size_t kHostname = 8 + 48;
    changed = bytes;
    changed[kHostname + 3] = '\xff';
    CHECK_FALSE(decode_plan(changed));
    // A NUL inside the host name.
    changed = bytes;
    changed[kHostname + 4] = '\0';
    CHECK_FALSE(decode_plan(changed));
    CHECK_FALSE(decode_plan(""));
    CHECK_FALSE(decode_plan(std::string(kPlanBytesMax + 1, 'C')));
}

TEST_CASE("a list holds at most kPlanListMax items") {
    Plan plan;
    plan.cgroup_procs.resize(kPlanListMax);
    const auto bytes = encode_plan(plan);
    REQUIRE(bytes);
    CHECK(decode_plan(*bytes) == plan);
    plan.cgroup_procs.emplace_back();
    CHECK_FALSE(encode_plan(plan));
    // The same said by hand: the count lies after magic, six numbers and the empty host name.
    std::string longer = *bytes;
    longer[8 + 24 + 4] = 1;
    longer[8 + 24 + 5] = 4;
    longer += std::string(4, '\0');
    CHECK_FALSE(decode_plan(longer));
}

TEST_CASE("a plan has at most kPlanPathsMax paths and kPlanBytesMax bytes") {
    Plan plan;
    plan.read_only.resize(kPlanPathsMax);
    CHECK(encode_plan(plan));
    plan.read_only.emplace_back();
    CHECK_FALSE(encode_plan(plan));

    Plan large;
    const std::size_t fixed = encode_plan(large).value().size();
    large.seccomp.resize(kPlanBytesMax - fixed);
    REQUIRE(encode_plan(large));
    CHECK(decode_plan(encode_plan(large).value()) == large);
    large.seccomp += 'x';
    CHECK_FALSE(encode_plan(large));
}

TEST_CASE("a string that the kernel would cut short is not encoded") {
    Plan plan = sample_plan();
    plan.read_only[0].source = std::string("/usr\0/etc", 9);
    CHECK_FALSE(encode_plan(plan));
}

}  // namespace cellkeep::sandbox
