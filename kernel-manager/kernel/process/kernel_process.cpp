// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/process/kernel_process.hpp"

#include "protocol/support/syscall.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

namespace cellkeep::session {

Result<Channels> make_channels() {
    BOOST_OUTCOME_TRY(auto link, make_socket_pair(SOCK_STREAM));
    BOOST_OUTCOME_TRY(auto out, make_pipe());
    BOOST_OUTCOME_TRY(auto err, make_pipe());
    // Only our ends: the kernel reads and writes blocking.
    BOOST_OUTCOME_TRY(set_nonblocking(link.first.get()));
    BOOST_OUTCOME_TRY(set_nonblocking(out.read_end.get()));
    BOOST_OUTCOME_TRY(set_nonblocking(err.read_end.get()));
    return Channels{
        {std::move(link.first), std::move(out.read_end), std::move(err.read_end)},
        {std::move(link.second), std::move(out.write_end), std::move(err.write_end)}};
}

Result<std::unique_ptr<KernelProcess>> KernelProcess::start(
    boost::asio::io_context& io,
    WorkerStarts& starts,
    std::vector<std::string> argv,
    std::vector<std::string> env,
    std::string working_directory,
    bool warm,
    sandbox::WorkerGroup group,
    Events events) {
    BOOST_OUTCOME_TRY(auto channels, make_channels());
    sandbox::WorkerSpec spec;
    spec.argv = std::move(argv);
    spec.env = std::move(env);
    spec.working_directory = std::move(working_directory);
    spec.warm = warm;
    spec.group = group;
    spec.link_fd = std::move(channels.theirs.link);
    spec.stdout_fd = std::move(channels.theirs.stdout_fd);
    spec.stderr_fd = std::move(channels.theirs.stderr_fd);
    return begin(io, starts, std::move(channels.ours), std::move(spec), std::move(events));
}

Result<std::unique_ptr<KernelProcess>> KernelProcess::take_over(
    boost::asio::io_context& io,
    WorkerStarts& starts,
    WokenProcess woken,
    sandbox::WorkerGroup group,
    Events events) {
    sandbox::WorkerSpec spec;
    spec.forked = woken.forked;
    spec.group = group;
    if (!woken.admit) {
        spec.born_in = sandbox::kSleepingGroup;  // of this sandbox
    }
    BOOST_OUTCOME_TRY(
        auto process,
        begin(
            io,
            starts,
            std::move(woken.ends),
            std::move(spec),
            std::move(events),
            std::move(woken.admit)));
    process->holds_messages_ = process->is_awaited_ || !process->pidfd_;
    return process;
}

Result<std::unique_ptr<KernelProcess>> KernelProcess::go_on(
    boost::asio::io_context& io, PassedInterpreter passed, Events events) {
    BOOST_OUTCOME_TRY(
        auto process,
        connect(
            io,
            {std::move(passed.link), std::move(passed.stdout_fd), std::move(passed.stderr_fd)},
            events));
    process->start_ = std::make_shared<WorkerStart>(passed.id);
    process->pidfd_ = std::move(passed.pidfd);
    process->listen();
    return process;
}

Result<std::unique_ptr<KernelProcess>> KernelProcess::connect(
    boost::asio::io_context& io, ChannelEnds ends, Events& events) {
    BOOST_OUTCOME_TRY(
        auto link_end,
        KernelLink::create(
            io,
            std::move(ends.link),
            {.on_message = std::move(events.on_message),
             .on_closed = std::move(events.on_link_closed)}));
    BOOST_OUTCOME_TRY(
        auto stdout_end,
        OutputPipe::create(
            io, std::move(ends.stdout_fd), [on_text = events.on_text](std::string_view text) {
                on_text(OutputStream::kStdout, text);
            }));
    BOOST_OUTCOME_TRY(
        auto stderr_end,
        OutputPipe::create(
            io, std::move(ends.stderr_fd), [on_text = events.on_text](std::string_view text) {
                on_text(OutputStream::kStderr, text);
            }));

    if (events.awaits_busy) {
        // The pipe holds the link, which holds nothing of the pipe's.
        const auto hear_busy = [link = link_end, awaits = std::move(events.awaits_busy)] {
            if (awaits()) {
                link->catch_up([&awaits] { return !awaits(); });
            }
        };
        stdout_end->set_before_read(hear_busy);
        stderr_end->set_before_read(hear_busy);
    }

    std::unique_ptr<KernelProcess> process(new KernelProcess());
    process->link_ = std::move(link_end);
    process->stdout_ = std::move(stdout_end);
    process->stderr_ = std::move(stderr_end);
    return process;
}

void KernelProcess::listen() {
    link_->start();
    stdout_->start();
    stderr_->start();
}

Result<std::unique_ptr<KernelProcess>> KernelProcess::begin(
    boost::asio::io_context& io,
    WorkerStarts& starts,
    ChannelEnds ends,
    sandbox::WorkerSpec spec,
    Events events,
    Admit admit) {
    BOOST_OUTCOME_TRY(auto process, connect(io, std::move(ends), events));
    process->admit_ = std::move(admit);
    process->is_awaited_ = process->admit_ != nullptr;
    process->on_failed_ = events.on_start_failed;
    const auto settle = [raw = process.get(), failed = std::move(events.on_start_failed)](
                            Result<sandbox::Worker> worker) {
        // The process holds its start: while this is called, it is there.
        if (worker.has_error()) {
            failed(worker.error());
        } else {
            raw->on_born(std::move(worker.value().pidfd));
        }
    };
    BOOST_OUTCOME_TRY(process->start_, starts.begin(std::move(spec), settle));
    process->listen();
    return process;
}

KernelProcess::~KernelProcess() {
    link_->close();
    stdout_->close();
    stderr_->close();
}

void KernelProcess::on_born(UniqueFd pidfd) {
    pidfd_ = std::move(pidfd);
    if (early_signal_ != 0) {
        (void)send_signal(early_signal_);  // Ignored: ESRCH means that it has ended already.
    }
    if (!is_awaited_) {
        speak();
        return;
    }
    const auto admit = std::exchange(admit_, nullptr);
    admit(pidfd_, [this, weak = std::weak_ptr(alive_)](const Status& admitted) {
        if (weak.expired()) {
            return;
        }
        if (admitted.has_value()) {
            speak();
        } else {
            (void)send_signal(SIGKILL);      // Ignored: ESRCH means that it has ended already.
            const auto failed = on_failed_;  // it may end this
            failed(admitted.error());
        }
    });
}

void KernelProcess::speak() {
    is_awaited_ = false;
    holds_messages_ = false;
    for (const protocol::Message& message : std::exchange(early_messages_, {})) {
        (void)link_->send(message);  // Ignored: fails if the process has closed its end, and ends.
    }
}

Status KernelProcess::send_with(const protocol::Message& message, UniqueFd descriptor) {
    if (!holds_messages_) {
        return link_->send(message, std::move(descriptor));
    }
    // Nothing but the first question is sent to a process that has not answered yet.
    if (descriptor || !early_messages_.empty()) {
        return Error(ErrorCode::kLimitExceeded, "kernel link: the process is not adopted yet");
    }
    early_messages_.push_back(message);
    return ok();
}

Status KernelProcess::send_signal(int number) const {
    if (!pidfd_) {
        early_signal_ = early_signal_ == SIGKILL ? SIGKILL : number;
        return ok();
    }
    if (::syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0) < 0) {
        return Error::from_errno(errno, "pidfd_send_signal(kernel)");
    }
    return ok();
}

bool KernelProcess::drain_pipes(int also) {
    // Mostly all are empty, which one system call tells. A closed one has -1, which is left out.
    std::array<pollfd, 3> all{
        pollfd{stdout_->descriptor(), POLLIN, 0},
        pollfd{stderr_->descriptor(), POLLIN, 0},
        pollfd{also, POLLIN, 0}};
    const int ready = ::poll(all.data(), all.size(), 0);
    if (ready == 0) {
        return false;
    }
    stdout_->drain();
    stderr_->drain();
    return ready < 0 || all[2].revents != 0;
}

void KernelProcess::drain_all() {
    // The link first: its frames carry the cell that the rest of the pipes' text belongs to.
    const auto link = link_;
    link->drain();
    (void)drain_pipes(-1);
}

bool KernelProcess::is_at_rest() const {
    return pidfd_ && !holds_messages_ && !is_awaited_ && link_->is_at_rest() &&
           stdout_->is_at_rest() && stderr_->is_at_rest();
}

PassedInterpreter KernelProcess::pass_on() {
    return {
        start_->id(), std::move(pidfd_), link_->pass_on(), stdout_->pass_on(), stderr_->pass_on()};
}

void KernelProcess::pause_reading() {
    link_->pause_reading();
    stdout_->pause_reading();
    stderr_->pause_reading();
}

void KernelProcess::resume_reading() {
    link_->resume_reading();
    stdout_->resume_reading();
    stderr_->resume_reading();
}

}  // namespace cellkeep::session
