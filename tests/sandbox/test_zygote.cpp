// SPDX-License-Identifier: Apache-2.0
#include "tests/sandbox/test_zygote.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/policy/host_mode.hpp"
#include "sandbox/server/network_pool.hpp"
#include "tests/sandbox/fixture.hpp"
#include "tests/support/process_tree.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace cellkeep::test {

using sandbox::Policy;
using sandbox::Zygote;

namespace {

/// The zygote for zygote_for(), and its processes and cgroups.
struct Made {
    std::shared_ptr<Zygote> zygote;
    pid_t pid1 = 0;
    pid_t program = 0;
    std::set<std::string> cgroups;
};

Made& made() {
    static Made only;
    return only;
}

/// The elements of `now` that are not in `before`.
template <typename List>
List added(const List& before, const List& now) {
    List added;
    std::copy_if(now.begin(), now.end(), std::inserter(added, added.end()), [&](const auto& one) {
        return std::find(before.begin(), before.end(), one) == before.end();
    });
    return added;
}

void make_the_one() {
    // Fills the network pool first, because the launchers that fill it are children, too.
    (void)sandbox::network_pool().take(sandbox::kNetworkPatience).has_value();
    (void)sandbox::network_pool().settle();
    const auto children = children_of(::getpid());
    const auto cgroups = cgroups_of(::getpid());
    made().zygote = make_zygote(test_policy());
    (void)sandbox::network_pool().settle();  // it replaces what the zygote has taken
    const auto pid1 = added(children, children_of(::getpid()));
    REQUIRE(pid1.size() == 1);
    made().pid1 = pid1.front();
    const auto program = children_of(made().pid1);
    REQUIRE(program.size() == 1);
    made().program = program.front();
    const auto own = added(cgroups, cgroups_of(::getpid()));
    made().cgroups = {own.begin(), own.end()};
}

}  // namespace

sandbox::ZygoteSpec zygote_spec(const Policy& policy, const std::string& what) {
    sandbox::ZygoteSpec spec;
    spec.policy = policy;
    spec.policy.inputs.clear();
    spec.policy.zygote = {kSessionUid, 256};
    if (sandbox::run_mode() == sandbox::RunMode::kRoot) {  // a user of its own
        spec.policy.host_uid = kSessionUid + 200;
        spec.policy.host_gid = kSessionUid + 200;
    }
    spec.program.argv = {"/probe", "--zygote", what};
    for (UniqueFd* fd : {&spec.program.stdout_fd, &spec.program.stderr_fd}) {
        auto null = open_file("/dev/null", O_WRONLY);
        REQUIRE(null.has_value());
        *fd = std::move(null).value();
    }
    spec.patience = kPatience;
    return spec;
}

std::shared_ptr<Zygote> make_zygote(const Policy& policy) {
    auto started = Zygote::start(zygote_spec(policy, ""));
    if (started.has_error()) {
        FAIL(started.error().message() << " (" << started.error().hint() << ")");
    }
    return std::move(started).value();
}

std::shared_ptr<Zygote> zygote_for(const Policy& policy) {
    static const bool wanted = std::getenv("CELLKEEP_TEST_ZYGOTE") != nullptr;
    if (!wanted) {
        return nullptr;
    }
    if (!made().zygote) {
        make_the_one();
    }
    return made().zygote->covers(policy) ? made().zygote : nullptr;
}

std::set<std::string> zygote_cgroups() {
    return made().cgroups;
}

std::vector<pid_t> children_but_zygotes() {
    std::vector<pid_t> children = children_of(::getpid());
    if (made().zygote) {
        const auto own = children_of(made().pid1);
        // First, because the pool's launchers come and go among our own.
        children.insert(children.begin(), own.begin(), own.end());
    }
    std::erase_if(children, [](pid_t pid) { return pid == made().pid1 || pid == made().program; });
    return children;
}

}  // namespace cellkeep::test
