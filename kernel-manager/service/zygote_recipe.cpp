// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/zygote_recipe.hpp"

#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {

namespace {

/// Its imports, on a busy machine.
constexpr std::chrono::seconds kZygotePatience{60};
/// One without libraries: sessions wait for it, and start without one when it takes longer.
constexpr std::chrono::seconds kBareZygotePatience{2};
/// What is loaded beforehand, once for all sessions, and what its forks hold before they move to
/// their own cgroups.
constexpr std::uint64_t kZygoteMemoryBytes = 1ULL << 30U;
constexpr std::uint32_t kZygoteProcesses = 512;
constexpr std::size_t kEnvironmentRoom = 16UL * 1024;
/// How much of what a zygote that failed has written is logged.
constexpr std::size_t kComplaintBytesMax = 2048;

/// With threads there is no fork: BLAS, OpenMP and Arrow's allocator start theirs when they are
/// loaded.
constexpr std::array kOneThread{
    "OPENBLAS_NUM_THREADS=1",
    "OMP_NUM_THREADS=1",
    "MKL_NUM_THREADS=1",
    "NUMEXPR_NUM_THREADS=1",
    "JE_ARROW_MALLOC_CONF=background_thread:false"};

/// kernels/python/cellkeep_kernel/warm.py reads it.
std::string preload_variable(const std::vector<std::string>& modules) {
    std::string variable = "CELLKEEP_PRELOAD=";
    for (const std::string& module : modules) {
        variable += (variable.back() == '=' ? "" : ",") + module;
    }
    return variable;
}

std::string read_now(const UniqueFd& pipe) {
    std::string text(kComplaintBytesMax, '\0');
    const ssize_t got = ::read(pipe.get(), text.data(), text.size());
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text.substr(0, text.find_last_not_of('\n') + 1);
}

Result<WarmStart::ZygotePtr> make_zygote(sandbox::ZygoteSpec zygote) {
    BOOST_OUTCOME_TRY(zygote.program.stdout_fd, open_file("/dev/null", O_WRONLY));
    BOOST_OUTCOME_TRY(auto complaints, make_pipe());
    BOOST_OUTCOME_TRY(set_nonblocking(complaints.read_end.get()));
    zygote.program.stderr_fd = std::move(complaints.write_end);
    auto made = sandbox::Zygote::start(std::move(zygote));
    if (made.has_error()) {
        const std::string said = read_now(complaints.read_end);
        return said.empty() ? std::move(made).error()
                            : Error(made.error().code(), made.error().message() + ": " + said);
    }
    return made;
}

}  // namespace

sandbox::ZygoteSpec describe_zygote(
    const KernelSpec& spec,
    Libraries libraries,
    const SessionLanguages& languages,
    const ServiceConfig& config) {
    const bool bare = libraries == Libraries::kNone;
    const sandbox::ZygotePolicy ids{
        config.host_id_base - 1, static_cast<std::uint32_t>(config.sessions_max) + kZygoteIdsSpare};
    sandbox::ZygoteSpec zygote;
    // Its host name is that of sessions: imports read it, and Python's platform keeps it.
    zygote.policy.read_only = languages.read_only;
    zygote.policy.images = languages.images;
    zygote.policy.limits.memory_bytes = kZygoteMemoryBytes;
    zygote.policy.limits.processes = kZygoteProcesses;
    zygote.policy.allow_degraded = config.allow_degraded;
    zygote.policy.host_uid = ids.first_id;
    zygote.policy.host_gid = ids.first_id;
    zygote.policy.zygote = ids;
    zygote.patience = bare ? kBareZygotePatience : kZygotePatience;
    zygote.program.argv = spec.argv;
    zygote.program.argv.emplace_back(bare ? kBareZygoteArgument : kZygoteArgument);
    zygote.program.env = spec.env;
    zygote.program.env.insert(zygote.program.env.end(), kOneThread.begin(), kOneThread.end());
    zygote.program.env.push_back(preload_variable(config.preload));
    // Otherwise each fork looks up on its own what it calls for the first time (ld.so(8)).
    zygote.program.env.emplace_back("LD_BIND_NOW=1");
    // Where its forks put their own variables, for /proc/PID/environ
    // (kernels/common/kernel_main.cpp).
    zygote.program.env.push_back("CELLKEEP_ROOM=" + std::string(kEnvironmentRoom, '-'));
    return zygote;
}

WarmStart::Make zygote_maker(
    const KernelSpec& spec,
    Libraries libraries,
    const SessionLanguages& languages,
    std::shared_ptr<const ServiceConfig> config) {
    return [spec, libraries, languages, config = std::move(config)](
               const std::function<bool()>& given_up) {
        sandbox::ZygoteSpec zygote = describe_zygote(spec, libraries, languages, *config);
        zygote.given_up = given_up;
        return make_zygote(std::move(zygote));
    };
}

}  // namespace cellkeep::session
