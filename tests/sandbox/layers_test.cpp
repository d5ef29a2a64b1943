// SPDX-License-Identifier: Apache-2.0
//
// The wall without its last layer: a sandbox whose seccomp filter allows every call. What is
// refused here is refused by namespaces, mounts, capabilities, rlimits and Landlock alone.
#include "protocol/support/syscall.hpp"
#include "sandbox/host_mode.hpp"
#include "sandbox/launch.hpp"
#include "sandbox/plan_builder.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <span>

namespace cellkeep::test {

using sandbox::kill_and_reap;
using sandbox::Launched;
using sandbox::PlanInputs;
using sandbox::ReplyMessage;
using sandbox::RequestHeader;

namespace {

std::string allow_everything() {
    const sock_filter allow{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    std::string program(sizeof(allow), '\0');
    std::memcpy(program.data(), &allow, sizeof(allow));
    return program;
}

Launched launch_without_filter() {
    PlanInputs inputs;
    inputs.mode = sandbox::run_mode();
    inputs.own_uid = ::geteuid();
    inputs.own_gid = ::getegid();
    inputs.seccomp = allow_everything();
    auto launched = sandbox::launch(build_plan(test_policy(), inputs), "", nullptr);
    if (launched.has_error()) {
        FAIL(launched.error().message());
    }
    return std::move(launched).value();
}

/// Sandbox::start by hand, because a Sandbox always has its filter.
std::string probe(const Launched& pid1, const std::vector<std::string>& arguments) {
    std::string text = std::string("/workspace") + '\0' + "/probe" + '\0';
    for (const std::string& argument : arguments) {
        text += argument + '\0';
    }
    RequestHeader header;
    header.argument_count = static_cast<std::uint32_t>(arguments.size() + 1);
    header.text_bytes = static_cast<std::uint32_t>(text.size());
    std::string request(sizeof(header), '\0');
    std::memcpy(request.data(), &header, sizeof(header));
    request += text;
    auto out = make_pipe();
    REQUIRE(out.has_value());
    const std::array fds{out.value().write_end.get(), out.value().write_end.get()};
    require_ok(send_with_fds(
        pid1.control.get(), std::as_bytes(std::span(request.data(), request.size())), fds));
    out.value().write_end.reset();
    ReplyMessage reply;
    REQUIRE(wait_readable(pid1.control.get()));
    REQUIRE(receive_with_fds(pid1.control.get(), std::as_writable_bytes(std::span(&reply, 1)))
                .has_value());
    REQUIRE(reply.error == 0);
    const std::string answer = read_all(out.value().read_end.get());
    return answer.substr(0, answer.find_last_not_of('\n') + 1);
}

std::string text(long value) {
    return std::to_string(value);
}

}  // namespace

TEST_CASE("without the filter a nested user namespace is still refused, by the limit on them") {
    const Launched pid1 = launch_without_filter();
    CHECK(probe(pid1, {"unshare", text(CLONE_NEWUSER)}) == "ENOSPC");
    CHECK(probe(pid1, {"clone", text(CLONE_NEWUSER)}) == "ENOSPC");
    require_ok(kill_and_reap(pid1.pidfd, kPatience));
}

TEST_CASE("without the filter no other namespace, mount or root can be had") {
    const Launched pid1 = launch_without_filter();
    for (const int flag :
         {CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWNET, CLONE_NEWCGROUP}) {
        CHECK(probe(pid1, {"unshare", text(flag)}) == "EPERM");
        CHECK(probe(pid1, {"clone", text(flag)}) == "EPERM");
    }
    for (const std::vector<std::string>& attempt : std::vector<std::vector<std::string>>{
             {"setns"}, {"fsopen", "tmpfs"}, {"open_tree"}, {"chroot"}}) {
        INFO(attempt[0]);
        CHECK(probe(pid1, attempt) == "EPERM");
    }
    require_ok(kill_and_reap(pid1.pidfd, kPatience));
}

TEST_CASE("without the filter no capability is there to be used") {
    const Launched pid1 = launch_without_filter();
    CHECK(probe(pid1, {"socket", text(AF_PACKET), text(SOCK_RAW), "0"}) == "EPERM");
    CHECK(probe(pid1, {"socket", text(AF_INET), text(SOCK_RAW), "1"}) == "EPERM");
    CHECK(probe(pid1, {"mknod_device", "/tmp"}) == "EACCES");  // Landlock speaks first
    CHECK(probe(pid1, {"fifo_scheduler"}) == "EPERM");
    CHECK(probe(pid1, {"syscall", text(SYS_setuid), "0"}) == "EINVAL");  // not in the map
    CHECK(probe(pid1, {"syscall", text(SYS_setgroups), "0", "0"}) == "EPERM");
    CHECK(probe(pid1, {"syscall", text(SYS_sethostname), "0", "0"}) == "EPERM");
    CHECK(probe(pid1, {"syscall", text(SYS_settimeofday), "0", "0"}) == "EPERM");
    CHECK(probe(pid1, {"syscall", text(SYS_reboot), "0", "0", "0", "0"}) == "EPERM");
    CHECK(probe(pid1, {"syscall", text(SYS_swapon), "0", "0"}) == "EPERM");
    require_ok(kill_and_reap(pid1.pidfd, kPatience));
}

TEST_CASE("without the filter the host's processes and files are still not there") {
    const Launched pid1 = launch_without_filter();
    CHECK(probe(pid1, {"kill", text(::getpid())}) == "ESRCH");
    CHECK(probe(pid1, {"prlimit_other", text(::getpid())}) == "ESRCH");
    CHECK(probe(pid1, {"open", "/etc/shadow", "r"}) == "ENOENT");
    CHECK(probe(pid1, {"open", "/proc/1/environ", "r"}) == "ENOENT");
    CHECK(probe(pid1, {"open", "/proc/self/uid_map", "w"}) == "EROFS");
    CHECK(probe(pid1, {"open", "/proc/self/mem", "rw"}) == "EROFS");
    CHECK(probe(pid1, {"ioctl", "0x5401"}) == "EACCES");  // TCGETS: Landlock, from ABI 5
    require_ok(kill_and_reap(pid1.pidfd, kPatience));
}

}  // namespace cellkeep::test
