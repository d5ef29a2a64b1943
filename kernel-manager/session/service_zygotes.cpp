// SPDX-License-Identifier: Apache-2.0
//
// How a Service makes zygotes, and sandboxes by them.
#include "kernel-manager/session/service_state.hpp"
#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace cellkeep::session {

namespace {

/// Its imports, on a busy machine.
constexpr std::chrono::seconds kZygotePatience{60};
/// What is loaded beforehand, once for all sessions, and what its forks hold before they move to
/// their own cgroups.
constexpr std::uint64_t kZygoteMemoryBytes = 1ULL << 30U;
constexpr std::uint32_t kZygoteProcesses = 512;
/// From the id of zygotes, which is the one before the first session's.
constexpr std::uint32_t kZygoteIds = 65'536;
constexpr std::size_t kEnvironmentRoom = 16UL * 1024;
/// How much of what a zygote that failed has written is told.
constexpr std::size_t kComplaintBytesMax = 2048;

/// With threads there is no fork: BLAS, OpenMP and Arrow's allocator start theirs when they are
/// loaded.
constexpr std::array kOneThread{
    "OPENBLAS_NUM_THREADS=1",
    "OMP_NUM_THREADS=1",
    "MKL_NUM_THREADS=1",
    "NUMEXPR_NUM_THREADS=1",
    "JE_ARROW_MALLOC_CONF=background_thread:false"};

std::string read_now(const UniqueFd& pipe) {
    std::string text(kComplaintBytesMax, '\0');
    const ssize_t got = ::read(pipe.get(), text.data(), text.size());
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text.substr(0, text.find_last_not_of('\n') + 1);
}

Result<ZygoteKeeper::ZygotePtr> make_zygote(
    const KernelSpec& spec,
    std::uint32_t host_id,
    const std::set<std::string, std::less<>>& allow_degraded) {
    sandbox::ZygoteSpec zygote;
    zygote.policy.hostname = "zygote";
    zygote.policy.read_only = spec.read_only;
    zygote.policy.images = spec.images;
    zygote.policy.limits.memory_bytes = kZygoteMemoryBytes;
    zygote.policy.limits.processes = kZygoteProcesses;
    zygote.policy.allow_degraded = allow_degraded;
    zygote.policy.host_uid = host_id;
    zygote.policy.host_gid = host_id;
    zygote.policy.zygote = {host_id, kZygoteIds};
    zygote.patience = kZygotePatience;
    zygote.program.argv = spec.argv;
    zygote.program.argv.emplace_back(kZygoteArgument);
    zygote.program.env = spec.env;
    zygote.program.env.insert(zygote.program.env.end(), kOneThread.begin(), kOneThread.end());
    // Where its forks put their own variables, for /proc/PID/environ
    // (kernels/common/kernel_main.cpp).
    zygote.program.env.push_back("CELLKEEP_ROOM=" + std::string(kEnvironmentRoom, '-'));
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

std::shared_ptr<ZygoteKeeper> ServiceState::make_keeper(const KernelSpec& spec) {
    return ZygoteKeeper::create(
        io_,
        {.make = [spec,
                  id = config_.host_id_base - 1,
                  degraded = config_.allow_degraded] { return make_zygote(spec, id, degraded); },
         .log =
             [weak = weak_from_this(), language = spec.language](const std::string& line) {
                 if (const auto self = weak.lock()) {
                     self->log(language + ": " + line);
                 }
             }},
        config_.zygote_bounds);
}

boost::asio::awaitable<Result<sandbox::Sandbox>> ServiceState::make_sandbox(
    const std::string& language, const sandbox::Policy& policy) {
    const auto keeper = zygotes_.find(language);
    auto zygote = keeper == zygotes_.end() ? nullptr : keeper->second->take();
    if (zygote && zygote->covers(policy)) {
        auto made = co_await SandboxMaker::make(maker_, policy, zygote);
        if (made.has_value() || shutting_down_) {
            co_return made;
        }
        log(language + ": without the zygote: " + made.error().message());
        keeper->second->report(zygote);
    }
    co_return co_await SandboxMaker::make(maker_, policy, nullptr);
}

}  // namespace cellkeep::session
