// SPDX-License-Identifier: Apache-2.0
#include "sandbox/policy/plan_builder.hpp"

#include "sandbox/policy/controls.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/shared/messages.hpp"

#include <catch2/catch.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <string>

namespace cellkeep::sandbox {

namespace {

Policy good_policy() {
    Policy policy;
    policy.host_uid = 5000;
    policy.host_gid = 5000;
    policy.read_only = {{"/usr", "/usr"}};
    return policy;
}

template <typename Change>
bool refused(Change change, RunMode mode = RunMode::kRoot) {
    Policy policy = good_policy();
    change(policy);
    const auto checked = check_policy(policy, mode);
    return checked.has_error() && checked.error().code() == ErrorCode::kInvalidArgument;
}

}  // namespace

TEST_CASE("a sound policy is accepted") {
    CHECK(check_policy(good_policy(), RunMode::kRoot).has_value());
    CHECK(check_policy(Policy(), RunMode::kRootless).has_value());
}

TEST_CASE("a session of a root server never runs as root") {
    CHECK(refused([](Policy& policy) { policy.host_uid = 0; }));
    CHECK(refused([](Policy& policy) { policy.host_gid = 0; }));
}

TEST_CASE("inputs lie clean and relative in the workspace, and not in each other's way") {
    const auto refused_input = [](const std::string& source, const std::string& target) {
        return refused([&](Policy& policy) { policy.inputs = {{source, target}}; });
    };
    CHECK_FALSE(refused_input("/srv/table.csv", "data/table.csv"));
    CHECK_FALSE(refused_input("/srv/table.csv", ".hidden"));
    for (const std::string& target :
         {std::string(),
          std::string("/a"),
          std::string("a/"),
          std::string("a//b"),
          std::string("."),
          std::string("./a"),
          std::string("a/."),
          std::string(".."),
          std::string("../a"),
          std::string("a/../b"),
          std::string("a/.."),
          std::string("a\0b", 3),
          std::string(4096, 'a')}) {
        INFO(target);
        CHECK(refused_input("/srv/table.csv", target));
    }
    for (const std::string& source :
         {std::string(),
          std::string("/"),
          std::string("a"),
          std::string("/a/../b"),
          std::string("/a/"),
          std::string("/a\0b", 4)}) {
        INFO(source);
        CHECK(refused_input(source, "a"));
    }
    for (const char* second : {"a/b", "a", "a/b/c"}) {
        INFO(second);
        CHECK(refused([&](Policy& policy) {
            policy.inputs = {{"/x", "a/b"}, {"/y", "c"}, {"/z", second}};
        }));
    }
    CHECK_FALSE(refused([](Policy& policy) { policy.inputs = {{"/x", "a/b"}, {"/x", "a/bc"}}; }));
    const auto many = [](std::size_t count) {
        return refused([=](Policy& policy) {
            for (std::size_t i = 0; i < count; ++i) {
                policy.inputs.push_back({"/x", std::to_string(i)});
            }
        });
    };
    CHECK_FALSE(many(kInputsMax));
    CHECK(many(kInputsMax + 1));
}

TEST_CASE("what lies over a read-only path has an absolute path, and is not asked of a zygote") {
    const auto refused_over = [](const std::string& over) {
        return refused([&](Policy& policy) {
            policy.read_only = {{.source = "/srv/usr", .target = "/usr", .over = over}};
        });
    };
    CHECK_FALSE(refused_over(""));
    CHECK_FALSE(refused_over("/srv/over"));
    for (const std::string& over :
         {std::string("srv"),
          std::string("./srv"),
          std::string("\0/srv", 5),
          std::string("/a\0b", 4)}) {
        CAPTURE(over);
        CHECK(refused_over(over));
    }
    Policy policy = good_policy();
    policy.read_only = {{.source = "/srv/usr", .target = "/usr", .over = "/srv/over"}};
    CHECK(build_plan(policy, PlanInputs()).read_only.front().over == "/srv/over");
    PlanInputs nested;
    nested.nested = true;
    CHECK(build_plan(policy, nested).read_only.front().over.empty());
}

TEST_CASE("inputs are mounted last, at their place in the workspace, and not to be run") {
    Policy policy = good_policy();
    policy.inputs = {{"/srv/table.csv", "data/table.csv"}};
    const Plan plan = build_plan(policy, PlanInputs());
    CHECK(
        plan.read_only.back() ==
        PlanReadOnlyPath{"/srv/table.csv", "/workspace/data/table.csv", false, false, true});
    CHECK_FALSE(plan.read_only.front().input);
}

TEST_CASE("only a session with a proxy gets a listener, and only in a network of its own") {
    for (const bool at_hand : {false, true}) {
        for (const NetworkMode mode : {NetworkMode::kNone, NetworkMode::kProxy}) {
            Policy policy = good_policy();
            policy.network = mode;
            PlanInputs inputs;
            inputs.enter_network = at_hand;
            const Plan plan = build_plan(policy, inputs);
            CHECK(plan.enter_network == at_hand);
            CHECK(plan.make_listener == (mode == NetworkMode::kProxy && !at_hand));
        }
    }
}

TEST_CASE("a plan for a zygote's fork has the zygote's paths, and a network of the zygote's") {
    Policy policy = good_policy();
    policy.read_only = {{"/srv/image/usr", "/usr"}};
    policy.network = NetworkMode::kProxy;
    PlanInputs inputs;
    inputs.mode = cellkeep::sandbox::RunMode::kRoot;
    inputs.nested = true;
    const Plan plan = build_plan(policy, inputs);
    CHECK(plan.nested);
    CHECK_FALSE(plan.privileged);
    CHECK(plan.host_uid == policy.host_uid);
    CHECK(plan.read_only.front().source == "/usr");
    CHECK(plan.enter_network);
    CHECK(plan.make_listener);
    CHECK_FALSE(plan.zygote);
    inputs.mode = cellkeep::sandbox::RunMode::kRootless;
    inputs.own_uid = 1234;
    CHECK(build_plan(policy, inputs).host_uid == 1234);
}

TEST_CASE("a zygote's plan has its ids, and every other has none") {
    Policy policy = good_policy();
    CHECK_FALSE(build_plan(policy, {}).zygote);
    policy.zygote = {900'000, 10};
    const Plan plan = build_plan(policy, {});
    CHECK(plan.zygote);
    CHECK(plan.first_id == 900'000);
    CHECK(plan.id_count == 10);
}

TEST_CASE("read-only paths are absolute, clean, and leave the sandbox's own directories alone") {
    for (const char* target :
         {"",
          "/",
          "usr",
          "/usr/",
          "//usr",
          "/a//b",
          "/./a",
          "/a/../b",
          "/..",
          "/a/.",
          "/proc",
          "/proc/self",
          "/dev",
          "/dev/shm",
          "/tmp/x",
          "/workspace",
          "/workspace/data",
          "/sys/fs"}) {
        INFO(target);
        CHECK(refused([&](Policy& policy) { policy.read_only.push_back({"/usr", target}); }));
    }
    for (const char* source : {"", "usr", "./usr"}) {
        INFO(source);
        CHECK(refused([&](Policy& policy) { policy.read_only.push_back({source, "/opt"}); }));
    }
    CHECK(refused([](Policy& policy) {
        policy.read_only.push_back({std::string("/a\0b", 4), "/opt"});
    }));
    CHECK_FALSE(refused([](Policy& policy) { policy.read_only.push_back({"/x", "/process"}); }));
    CHECK_FALSE(refused([](Policy& policy) { policy.read_only.resize(256, {"/usr", "/usr"}); }));
    CHECK(refused([](Policy& policy) { policy.read_only.resize(257, {"/usr", "/usr"}); }));
}

TEST_CASE("a host name is 1 to 64 plain characters") {
    CHECK_FALSE(refused([](Policy& policy) { policy.hostname = std::string(64, 'h'); }));
    for (const std::string& name :
         {std::string(),
          std::string(65, 'h'),
          std::string("a b"),
          std::string("a\n"),
          std::string("a\0b", 3),
          std::string("a/b")}) {
        INFO(name);
        CHECK(refused([&](Policy& policy) { policy.hostname = name; }));
    }
}

TEST_CASE("no limit may be zero, endless or no number") {
    CHECK(refused([](Policy& policy) { policy.limits.memory_bytes = 0; }));
    CHECK(refused([](Policy& policy) { policy.limits.memory_bytes = ~0ULL; }));
    CHECK(refused([](Policy& policy) { policy.limits.workspace_bytes = 0; }));
    CHECK(refused([](Policy& policy) { policy.limits.workspace_inodes = 0; }));
    CHECK(refused([](Policy& policy) { policy.limits.tmp_bytes = 0; }));
    CHECK(refused([](Policy& policy) { policy.limits.tmp_inodes = 0; }));
    CHECK(refused([](Policy& policy) { policy.limits.shm_bytes = 0; }));
    CHECK(refused([](Policy& policy) { policy.limits.processes = 0; }));
    CHECK(refused([](Policy& policy) { policy.limits.open_files = 0; }));
    CHECK(refused([](Policy& policy) { policy.limits.file_bytes = 0; }));
    for (const double cores :
         {0.0,
          -1.0,
          std::numeric_limits<double>::infinity(),
          std::numeric_limits<double>::quiet_NaN()}) {
        CHECK(refused([&](Policy& policy) { policy.limits.cpu_cores = cores; }));
    }
}

TEST_CASE("the plan maps the session's user for root, and the server's own otherwise") {
    PlanInputs inputs;
    inputs.own_uid = 777;
    inputs.own_gid = 778;
    inputs.mode = RunMode::kRoot;
    CHECK(build_plan(good_policy(), inputs).host_uid == 5000);
    CHECK(build_plan(good_policy(), inputs).privileged);
    inputs.mode = RunMode::kRootless;
    CHECK(build_plan(good_policy(), inputs).host_uid == 777);
    CHECK(build_plan(good_policy(), inputs).host_gid == 778);
    CHECK_FALSE(build_plan(good_policy(), inputs).privileged);
}

TEST_CASE("what the caller brings is not made by the sandbox") {
    const auto has = [](const auto& list, const char* path) {
        return std::any_of(
            list.begin(), list.end(), [&](const auto& item) { return item.path == path; });
    };
    Policy policy = good_policy();
    Plan plan = build_plan(policy, {});
    CHECK(has(plan.files, "/etc/hosts"));
    CHECK(has(plan.links, "/bin"));
    policy.read_only.push_back({"/data/hosts", "/etc/hosts"});
    policy.read_only.push_back({"/bin", "/bin"});
    plan = build_plan(policy, {});
    CHECK_FALSE(has(plan.files, "/etc/hosts"));
    CHECK(has(plan.files, "/etc/passwd"));
    CHECK_FALSE(has(plan.links, "/bin"));
    CHECK(has(plan.links, "/lib"));
}

TEST_CASE("memory is bounded per process only when there is no cgroup for it") {
    const auto has_data_limit = [](const Plan& plan) {
        return std::any_of(plan.rlimits.begin(), plan.rlimits.end(), [](const PlanRlimit& limit) {
            return limit.resource == RLIMIT_DATA;
        });
    };
    PlanInputs inputs;
    CHECK_FALSE(has_data_limit(build_plan(good_policy(), inputs)));
    inputs.limit_memory_by_rlimit = true;
    CHECK(has_data_limit(build_plan(good_policy(), inputs)));
}

TEST_CASE("open files are a limit of workers; pid 1 keeps the server's") {
    Policy policy = good_policy();
    policy.limits.open_files = 77;
    const Plan plan = build_plan(policy, {});
    CHECK(plan.worker_open_files == 77);
    Policy zygote = policy;
    zygote.zygote.emplace();
    CHECK(build_plan(zygote, {}).worker_open_files == RLIM_INFINITY);
    CHECK(std::none_of(plan.rlimits.begin(), plan.rlimits.end(), [](const PlanRlimit& limit) {
        return limit.resource == RLIMIT_NOFILE;
    }));
}

TEST_CASE("only waivable controls become waived bits") {
    CHECK(waived_bits({}) == 0);
    CHECK(waived_bits({"landlock"}) == control_bit(ChildControl::kLandlock));
    CHECK(waived_bits({"user_namespace", "capabilities", "memory_limit"}) == 0);
    CHECK_FALSE(is_waivable("kill"));
    CHECK_FALSE(is_waivable("nonsense"));
    CHECK(is_waivable("memory_limit"));
}

TEST_CASE("a report names every control once, and what was not reached is absent") {
    ChildReport child;
    child.outcome.fill(kControlNotReached);
    child.outcome[0] = 0;
    const auto controls = describe_child_controls(child);
    REQUIRE(controls.size() == kChildControlCount);
    CHECK(controls[0].state == ControlState::kApplied);
    for (std::size_t i = 1; i < controls.size(); ++i) {
        CHECK(controls[i].state == ControlState::kAbsent);
        CHECK(controls[i].name == control_names()[i]);
    }
    CHECK(control_names().size() == kChildControlCount + 7);
}

TEST_CASE("every setup step has a name, and the control it belongs to exists") {
    const auto& names = control_names();
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(SetupStep::kCount); ++i) {
        const auto step = static_cast<SetupStep>(i);
        CHECK_FALSE(std::string(step_name(step)).empty());
        const std::string control = step_control(step);
        CHECK((control.empty() || std::find(names.begin(), names.end(), control) != names.end()));
    }
    CHECK(std::string(step_name(SetupStep::kCount)) == "unknown step");
}

}  // namespace cellkeep::sandbox
