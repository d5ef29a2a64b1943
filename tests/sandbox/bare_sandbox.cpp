// SPDX-License-Identifier: Apache-2.0
#include "tests/sandbox/bare_sandbox.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/policy/host_mode.hpp"
#include "sandbox/policy/plan_builder.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace cellkeep::test {

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

}  // namespace

Launched launch_without_filter(const sandbox::Policy& policy) {
    PlanInputs inputs;
    inputs.mode = sandbox::run_mode();
    inputs.own_uid = ::geteuid();
    inputs.own_gid = ::getegid();
    inputs.seccomp = allow_everything();
    auto plan = build_plan(policy, inputs);
    plan.waived |= control_bit(sandbox::ChildControl::kDenialReports);
    auto launched = sandbox::launch(plan, "", UniqueFd(), nullptr);
    if (launched.has_error()) {
        FAIL(launched.error().message());
    }
    return std::move(launched).value();
}

ReplyMessage ask_start(
    const Launched& pid1,
    const std::vector<std::string>& argv,
    std::span<const int> fds,
    std::uint32_t own_cgroup,
    std::uint32_t group,
    std::uint32_t own_input,
    std::uint32_t own_terminal) {
    std::string text = std::string("/workspace") + '\0';
    for (const std::string& argument : argv) {
        text += argument + '\0';
    }
    RequestHeader header;
    header.own_cgroup = own_cgroup;
    header.group = group;
    header.own_input = own_input;
    header.own_terminal = own_terminal;
    header.argument_count = static_cast<std::uint32_t>(argv.size());
    header.text_bytes = static_cast<std::uint32_t>(text.size());
    std::string request(sizeof(header), '\0');
    std::memcpy(request.data(), &header, sizeof(header));
    request += text;
    require_ok(send_with_fds(
        pid1.control.get(), std::as_bytes(std::span(request.data(), request.size())), fds));
    ReplyMessage reply;
    REQUIRE(wait_readable(pid1.control.get()));
    REQUIRE(receive_with_fds(pid1.control.get(), std::as_writable_bytes(std::span(&reply, 1)))
                .has_value());
    return reply;
}

std::string probe(const Launched& pid1, const std::vector<std::string>& arguments) {
    std::vector<std::string> argv{"/probe"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    auto out = make_pipe();
    REQUIRE(out.has_value());
    const std::array fds{out.value().write_end.get(), out.value().write_end.get()};
    REQUIRE(ask_start(pid1, argv, fds).error == 0);
    out.value().write_end.reset();
    const std::string answer = read_all(out.value().read_end.get());
    return answer.substr(0, answer.find_last_not_of('\n') + 1);
}

}  // namespace cellkeep::test
