// SPDX-License-Identifier: Apache-2.0
//
// How a Service makes zygotes, and sandboxes by them.
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/service/service_state.hpp"
#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

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
/// Ids besides those of the most sessions there may be: its own, which is the one before the first
/// session's, and those of sessions that have ended but are not quite gone.
constexpr std::uint32_t kZygoteIdsSpare = 64;
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

enum class Libraries { kImported, kNone };

Result<ZygoteKeeper::ZygotePtr> make_zygote(
    const KernelSpec& spec,
    Libraries libraries,
    const SessionLanguages& languages,
    const sandbox::ZygotePolicy& ids,
    const std::set<std::string, std::less<>>& allow_degraded,
    const std::function<bool()>& given_up) {
    const bool bare = libraries == Libraries::kNone;
    sandbox::ZygoteSpec zygote;
    zygote.policy.hostname = "zygote";
    zygote.policy.read_only = languages.read_only;
    zygote.policy.images = languages.images;
    zygote.policy.limits.memory_bytes = kZygoteMemoryBytes;
    zygote.policy.limits.processes = kZygoteProcesses;
    zygote.policy.allow_degraded = allow_degraded;
    zygote.policy.host_uid = ids.first_id;
    zygote.policy.host_gid = ids.first_id;
    zygote.policy.zygote = ids;
    zygote.patience = bare ? kBareZygotePatience : kZygotePatience;
    zygote.given_up = given_up;
    zygote.program.argv = spec.argv;
    zygote.program.argv.emplace_back(bare ? kBareZygoteArgument : kZygoteArgument);
    zygote.program.env = spec.env;
    zygote.program.env.insert(zygote.program.env.end(), kOneThread.begin(), kOneThread.end());
    // Otherwise each fork looks up on its own what it calls for the first time (ld.so(8)).
    zygote.program.env.emplace_back("LD_BIND_NOW=1");
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

std::shared_ptr<WarmStart> ServiceState::make_warm_start(const KernelSpec& spec) {
    const auto make = [this, &spec](Libraries libraries) {
        const sandbox::ZygotePolicy ids{
            config_.host_id_base - 1,
            static_cast<std::uint32_t>(config_.sessions_max) + kZygoteIdsSpare};
        return [spec,
                libraries,
                languages = languages_.at(spec.language),
                ids,
                degraded = config_.allow_degraded](const std::function<bool()>& given_up) {
            return make_zygote(spec, libraries, languages, ids, degraded, given_up);
        };
    };
    return WarmStart::create(
        io_,
        {.make_full = make(Libraries::kImported),
         .make_bare = make(Libraries::kNone),
         .on_ready =
             [weak = weak_from_this()] {
                 if (const auto self = weak.lock()) {
                     self->announce_ready();
                 }
             },
         .log =
             [weak = weak_from_this(), language = spec.language](const std::string& line) {
                 if (const auto self = weak.lock()) {
                     self->log(language + ": " + line);
                 }
             }},
        config_.zygote_bounds);
}

bool ServiceState::ready() const {
    return begun_ && has_spares_ &&
           std::all_of(warm_starts_.begin(), warm_starts_.end(), [](const auto& one) {
               return one.second->ready();
           });
}

void ServiceState::announce_ready() {
    if (!ready() || std::exchange(announced_ready_, true)) {
        return;
    }
    if (config_.log_ready) {
        config_.log_ready(std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::steady_clock::now() - made_at_));
    }
}

void ServiceState::tell_zygote(const LiveSession& session, bool started) {
    const auto warm = warm_starts_.find(session.options().language);
    const auto zygote = session.zygote();
    if (warm == warm_starts_.end() || !zygote || shutting_down_) {
        return;
    }
    if (started) {
        warm->second->praise(zygote);
    } else {
        warm->second->report(zygote);
    }
}

boost::asio::awaitable<Result<sandbox::Sandbox>> ServiceState::make_sandbox(
    const std::string& language, const sandbox::Policy& policy) {
    const auto warm = warm_starts_.find(language);
    ZygoteKeeper::ZygotePtr zygote;
    if (warm !=
        warm_starts_.end()) {  // no conditional expression: g++ 12 destroys its result twice
        zygote = co_await warm->second->take();
    }
    if (zygote && zygote->covers(policy)) {
        auto made = co_await SandboxMaker::make(maker_, policy, zygote);
        if (made.has_value() || shutting_down_) {
            co_return made;
        }
        log(language + ": without the zygote: " + made.error().message());
        auto plain = co_await SandboxMaker::make(maker_, policy, nullptr);
        if (plain.has_value()) {
            warm->second->report(zygote);  // it is not the host that is at fault
        }
        co_return plain;
    }
    co_return co_await SandboxMaker::make(maker_, policy, nullptr);
}

}  // namespace cellkeep::session
