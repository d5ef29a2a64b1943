// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandbox.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/cgroup/leftovers.hpp"
#include "sandbox/server/event_reader.hpp"
#include "sandbox/server/idle_probe.hpp"
#include "sandbox/server/launcher_process.hpp"
#include "sandbox/server/loopback_connection.hpp"
#include "sandbox/server/sandbox_state.hpp"
#include "sandbox/server/worker_descriptors.hpp"
#include "sandbox/server/worker_place.hpp"
#include "sandbox/server/zygote.hpp"

#include <span>
#include <utility>

namespace cellkeep::sandbox {

namespace {

constexpr const char* kNoAnswer = "the sandbox's pid 1 did not answer in time";

}  // namespace

Sandbox::Sandbox(std::unique_ptr<SandboxState> state) : state_(std::move(state)) {}
Sandbox::Sandbox(Sandbox&& other) noexcept = default;

Sandbox& Sandbox::operator=(Sandbox&& other) noexcept {
    if (this != &other) {
        if (state_) {
            state_->abandon();
        }
        state_ = std::move(other.state_);
    }
    return *this;
}

Sandbox::~Sandbox() {
    if (state_) {
        state_->abandon();
    }
}

Result<Sandbox> Sandbox::create(const Policy& policy) {
    return create(policy, nullptr);
}

Result<Sandbox> Sandbox::create(const Policy& policy, std::shared_ptr<Zygote> zygote) {
    if (zygote && !zygote->covers(policy)) {
        return Error(
            ErrorCode::kInvalidArgument,
            "sandbox policy: it has paths, inputs or ids that the zygote does not have");
    }
    BOOST_OUTCOME_TRY(
        auto assembled, assemble(policy, MissingControl::kRefuse, nullptr, zygote.get()));
    auto state = std::make_unique<SandboxState>(SandboxState{
        std::move(assembled.pid1),
        std::move(assembled.cgroup),
        std::move(assembled.isolation),
        std::move(zygote),
        assembled.file_uid,
        assembled.file_gid});
    return Sandbox(std::move(state));
}

Result<Worker> Sandbox::start(WorkerSpec spec) {
    BOOST_OUTCOME_TRY(begin_start(std::move(spec)));
    const auto deadline = std::chrono::steady_clock::now() + kStartPatience;
    while (true) {
        if (const auto there = wait_until_readable(answer_fd(), deadline); there.has_error()) {
            const std::string what = "start " + state_->asked->program;
            give_up();  // a worker that comes later would have no owner
            return there.error().code() == ErrorCode::kTimeout
                       ? Error(ErrorCode::kTimeout, what + ": " + kNoAnswer)
                       : there.error();
        }
        BOOST_OUTCOME_TRY(auto worker, take_start());
        if (worker.has_value()) {
            return std::move(*worker);
        }
    }
}

Result<WorkerId> Sandbox::begin_start(WorkerSpec spec) {
    if (state_->ending || state_->frozen || state_->asked.has_value()) {
        return Error(
            ErrorCode::kConflict,
            state_->asked.has_value() ? "start: another start is under way"
                                      : "start: the sandbox is frozen or destroyed");
    }
    if (state_->given_up) {
        return Error(ErrorCode::kUnavailable, "start: the sandbox is dead");
    }
    if (spec.warm && !is_warm()) {
        return Error(ErrorCode::kInvalidArgument, "start: warm, but no zygote made the sandbox");
    }
    BOOST_OUTCOME_TRY(auto request, start_message(spec));
    auto& [header, text, fds] = request;
    if (spec.forked == 0) {
        BOOST_OUTCOME_TRY(give_channels(spec, state_->file_uid, state_->file_gid));
    } else {
        spec.argv = {"process " + std::to_string(spec.forked)};  // for what errors say
    }
    BOOST_OUTCOME_TRY(const WorkerPlace place, place_worker(*state_, spec));
    header.own_cgroup = place.own_cgroup;
    if (place.procs) {
        fds.push_back(place.procs.get());
    }
    header.worker_id = ++state_->last_worker;
    BOOST_OUTCOME_TRY(
        const std::uint32_t sequence,
        with_context(state_->channel.send(header, text, fds), "start " + spec.argv[0]));
    state_->asked = AskedStart{
        sequence,
        header.worker_id,
        std::move(spec.argv[0]),
        std::move(spec.working_directory),
        spec.forked != 0,
        spec.group,
        place.stays_in};
    return header.worker_id;
}

Status Sandbox::give_outputs(const UniqueFd& stdout_fd, const UniqueFd& stderr_fd) const {
    BOOST_OUTCOME_TRY(give_pipe(stdout_fd, state_->file_uid, state_->file_gid));
    return give_pipe(stderr_fd, state_->file_uid, state_->file_gid);
}

int Sandbox::answer_fd() const {
    return state_->channel.fd();
}

Result<std::optional<Worker>> Sandbox::take_start() {
    while (state_->asked.has_value()) {
        auto reply = with_context(state_->channel.take(), "start " + state_->asked->program);
        if (reply.has_error()) {
            state_->asked.reset();
            return std::move(reply).error();
        }
        if (!reply.value().has_value()) {
            break;
        }
        if (reply.value()->message.sequence == state_->asked->sequence) {
            const AskedStart asked = *std::exchange(state_->asked, std::nullopt);
            BOOST_OUTCOME_TRY(auto worker, read_start_reply(asked, std::move(*reply.value())));
            if (asked.adopts) {
                BOOST_OUTCOME_TRY(settle_adopted(*state_, asked, worker));
            }
            return std::optional(std::move(worker));
        }
        // Of a kill_workers() that did not wait for it.
    }
    return std::optional<Worker>();
}

void Sandbox::give_up() {
    state_->given_up = true;
    state_->asked.reset();
    state_->kill_pid1();
}

bool Sandbox::is_warm() const {
    return state_->zygote != nullptr;
}

std::shared_ptr<Zygote> Sandbox::zygote() const {
    return state_->zygote;
}

int Sandbox::event_fd() const {
    return state_->pid1.events.get();
}

Result<std::optional<SandboxEvent>> Sandbox::next_event() {
    if (state_->ending || state_->death_told) {
        return std::optional<SandboxEvent>();
    }
    EventMessage message;
    auto received =
        receive_with_fds(state_->pid1.events.get(), std::as_writable_bytes(std::span(&message, 1)));
    if (received.has_error()) {
        if (received.error().code() == ErrorCode::kUnavailable) {
            return std::optional<SandboxEvent>();
        }
        return state_->fail(std::move(received).error());
    }
    if (received.value().bytes != sizeof(message)) {
        const bool closed = received.value().bytes == 0;
        state_->note_death(closed ? "pid 1 closed its reports" : "a report has a wrong size");
        return std::optional(SandboxEvent{SandboxEvent::Kind::kSandboxDied, {}, {}, 0});
    }
    if (message.kind == EventKind::kSwept) {
        if (auto limited = state_->cgroup.restore_cpu_limit(); limited.has_error()) {
            return state_->fail(std::move(limited).error());
        }
    }
    return std::optional(read_event(message));
}

const std::string& Sandbox::unexpected_end() const {
    return state_->death;
}

Status Sandbox::begin_sweep() {
    BOOST_OUTCOME_TRY(state_->kill_workers());
    RequestHeader header;
    header.kind = RequestKind::kSweep;
    const auto asked = with_context(state_->channel.send(header, "", {}), "sweep");
    if (asked.has_error()) {
        BOOST_OUTCOME_TRY(state_->cgroup.restore_cpu_limit());  // no event will do it
        return asked.error();
    }
    return ok();
}

Status Sandbox::begin_sweep(WorkerGroup group) {
    if (group >= kWorkerGroupsMax) {
        return Error(ErrorCode::kInvalidArgument, "sweep: there is no such group of workers");
    }
    if (state_->sleepers_among == group) {
        state_->sweep_waits = true;
        return ok();
    }
    // Within the session's quota: the other groups live on and would have the machine meanwhile.
    BOOST_OUTCOME_TRY(state_->prepare_kill());
    // Ignored: then pid 1 does it alone, as far as it can.
    (void)state_->cgroup.kill_group(group).has_value();
    RequestHeader header;
    header.kind = RequestKind::kSweepGroup;
    header.group = group;
    const UniqueFd events = state_->cgroup.open_group_events(group);
    std::vector<int> fds;
    if (events) {
        fds.push_back(events.get());
    }
    BOOST_OUTCOME_TRY(with_context(state_->channel.send(header, "", fds), "sweep"));
    return ok();
}

Status Sandbox::signal(WorkerId worker, int number) {
    return state_->channel.signal(worker, number);
}

Status Sandbox::kill_workers(std::chrono::milliseconds patience) {
    if (state_->asked.has_value()) {
        return Error(ErrorCode::kConflict, "kill_workers: a start is under way");
    }
    BOOST_OUTCOME_TRY(state_->kill_workers());
    RequestHeader header;
    header.kind = RequestKind::kKillAll;
    const auto asked = with_context(state_->channel.send(header, "", {}), "kill_workers");
    auto reply = asked.has_error()
                     ? Result<InitChannel::Reply>(asked.error())
                     : with_context(state_->channel.wait(asked.value(), patience), "kill_workers");
    Status rationed = state_->cgroup.restore_cpu_limit();
    if (reply.has_error()) {
        return reply.error();
    }
    if (reply.value().message.error != 0) {
        return Error::from_errno(reply.value().message.error, "kill_workers");
    }
    return rationed;
}

Status Sandbox::freeze(std::chrono::milliseconds patience) {
    if (state_->ending) {
        return Error(ErrorCode::kConflict, "freeze: the sandbox is destroyed");
    }
    // Before the call: a freeze that only came late is in force all the same.
    state_->frozen = true;
    auto frozen = state_->cgroup.freeze(patience);
    if (frozen.has_error() && frozen.error().code() == ErrorCode::kUnavailable) {
        state_->frozen = false;
    }
    return frozen;
}

Status Sandbox::thaw() {
    if (state_->ending) {
        return Error(ErrorCode::kConflict, "thaw: the sandbox is destroyed");
    }
    BOOST_OUTCOME_TRY(state_->cgroup.thaw());
    state_->frozen = false;
    return ok();
}

bool Sandbox::is_frozen() const {
    return state_->frozen;
}

Result<bool> Sandbox::is_waiting() const {
    if (state_->ending) {
        return Error(ErrorCode::kConflict, "look: the sandbox is destroyed");
    }
    const std::vector<std::string> files = state_->cgroup.frozen_procs_files();
    if (files.empty()) {
        return Error(ErrorCode::kUnavailable, "look: there is no cgroup to look into");
    }
    BOOST_OUTCOME_TRY(const pid_t pid1, pid_of(state_->pid1.pidfd.get()));
    return all_wait_without_limit(files, pid1);
}

Status Sandbox::change_limits(const LimitsChange& wanted) {
    if (state_->ending) {
        return Error(ErrorCode::kConflict, "limits: the sandbox is destroyed");
    }
    return state_->cgroup.change(wanted);
}

bool Sandbox::restart_memory_peak() {
    return !state_->ending && state_->cgroup.restart_memory_peak();
}

Result<Usage> Sandbox::usage() const {
    if (state_->ending) {
        return Error(ErrorCode::kConflict, "usage: the sandbox is destroyed");
    }
    return to_usage(state_->cgroup.usage());
}

Result<Usage> Sandbox::counters() const {
    if (state_->ending) {
        return Error(ErrorCode::kConflict, "counters: the sandbox is destroyed");
    }
    return to_usage(state_->cgroup.counters());
}

Result<Usage> Sandbox::cpu_counter() const {
    if (state_->ending) {
        return Error(ErrorCode::kConflict, "cpu time: the sandbox is destroyed");
    }
    return to_usage(state_->cgroup.cpu_counter());
}

Result<std::chrono::microseconds> Sandbox::cpu_time(WorkerGroup group) const {
    if (state_->ending) {
        return Error(ErrorCode::kConflict, "cpu time: the sandbox is destroyed");
    }
    return state_->cgroup.group_cpu_time(group);
}

Result<std::uint64_t> Sandbox::memory_peak() const {
    if (state_->ending) {
        return Error(ErrorCode::kConflict, "memory peak: the sandbox is destroyed");
    }
    return state_->cgroup.memory_peak();
}

const IsolationReport& Sandbox::isolation() const {
    return state_->isolation;
}

Result<UniqueFd> Sandbox::begin_connection(std::uint16_t port, Loopback address) {
    if (state_->ending || state_->frozen || state_->given_up) {
        return Error(ErrorCode::kConflict, "connect: the sandbox is frozen or destroyed");
    }
    return ask_for_connection(state_->channel, port, address);
}

UniqueFd Sandbox::take_proxy_listener() {
    return std::move(state_->pid1.listener);
}

int Sandbox::workspace_fd() const {
    return state_->pid1.workspace.get();
}

uid_t Sandbox::file_uid() const {
    return state_->file_uid;
}

gid_t Sandbox::file_gid() const {
    return state_->file_gid;
}

void Sandbox::begin_destroy() {
    if (state_->destroyed) {
        return;
    }
    // Ignored: destroy() does it again and tells.
    (void)state_->kill().has_value();
    state_->kill_pid1();
}

Sandbox Sandbox::release() {
    begin_destroy();
    Sandbox rest = set_aside();
    rest.state_->ending = true;
    return rest;
}

Status Sandbox::destroy(std::chrono::milliseconds patience) {
    auto result = state_->destroy(patience);
    (void)clear_leftovers();  // Ignored: what is left is tried again.
    return result;
}

}  // namespace cellkeep::sandbox
