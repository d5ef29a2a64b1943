// SPDX-License-Identifier: Apache-2.0
//
// Waiting for the driver, its events, its end; and faults of a driver that says what none may say.
#include "kernels/driver/driver_interpreter.hpp"
#include "protocol/json.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace cellkeep::kernels::driver {

namespace {

using nlohmann::json;

/// Of a line that is wrong, for its error.
constexpr std::size_t kQuotedBytes = 200;
/// Of a line, where its event's name is looked for.
constexpr std::size_t kEventHeadBytes = 40;
constexpr int kForEver = -1;

/// Until then, in whole milliseconds, rounded up; poll(2) would else wake up early and often.
int milliseconds_until(std::chrono::steady_clock::time_point when) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(when - std::chrono::steady_clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1'000'000));
}

/// Whether the line is a value shown that is only nested too deeply or too large for parse_json:
/// the user's, and no fault of the driver's. Its first member says what it is.
bool shows_too_much(std::string_view line) {
    std::string head(line.substr(0, kEventHeadBytes));
    head.erase(std::remove(head.begin(), head.end(), ' '), head.end());
    const bool shows =
        head.rfind(R"({"event":"display",)", 0) == 0 || head.rfind(R"({"event":"result",)", 0) == 0;
    return shows && protocol::is_json(line);
}

std::string describe_end(int status) {
    return WIFSIGNALED(status) ? "by signal " + std::to_string(WTERMSIG(status))
                               : "with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Status DriverInterpreter::wait_until_ready() {
    const Wanted wanted{-1, Clock::now() + options_.ready_max};
    while (ready_.is_null() && !fault_) {
        if (wait(wanted) == Woken::kDeadline && ready_.is_null()) {
            set_fault(
                "it was not ready within " + std::to_string(options_.ready_max.count()) + " ms");
        }
    }
    return fault_ ? Status(*fault_) : ok();
}

Status DriverInterpreter::wait_readable(int fd) {
    while (true) {
        if (fault_) {
            return *fault_;
        }
        // Every interrupt that is here by now was for a cell that has ended.
        take_interrupts();
        if (parts().inbox.has_held() || wait({fd, std::nullopt}) == Woken::kLink) {
            take_interrupts();
            return ok();
        }
    }
}

DriverInterpreter::Woken DriverInterpreter::wait(const Wanted& wanted) {
    const bool takes_interrupts = interruptible_ || !running_;
    enum { kEvents, kEnded, kSignals, kLink, kRequests, kWaits };
    std::array<pollfd, kWaits> waits{
        pollfd{process_.events_fd(), POLLIN, 0},
        pollfd{process_.ended_fd(), POLLIN, 0},
        pollfd{takes_interrupts ? signals_.get() : -1, POLLIN, 0},
        pollfd{wanted.link, POLLIN, 0},
        pollfd{process_.has_unsent() ? process_.requests_fd() : -1, POLLOUT, 0}};
    const int timeout = wanted.deadline ? milliseconds_until(*wanted.deadline) : kForEver;
    const int ready = ::poll(waits.data(), waits.size(), timeout);
    if (ready <= 0) {
        const bool late = ready == 0 && wanted.deadline && Clock::now() >= *wanted.deadline;
        return late ? Woken::kDeadline : Woken::kOther;
    }
    if (waits[kSignals].revents != 0) {
        take_interrupts();
    }
    if (waits[kRequests].revents != 0) {
        process_.send_more();
    }
    if (waits[kEnded].revents != 0) {
        take_end();
    } else if (waits[kEvents].revents != 0) {
        read_events();
    }
    return waits[kLink].revents != 0 ? Woken::kLink : Woken::kOther;
}

void DriverInterpreter::read_events() {
    const auto read = process_.read();
    if (!read) {
        set_fault(read.error().message());
        return;
    }
    take_lines();
    if (read.value() == DriverProcess::Read::kEnd) {
        note_closed();
    }
}

void DriverInterpreter::take_lines() {
    while (!fault_) {
        const std::optional<std::string_view> line = process_.next_line();
        if (!line) {
            return;
        }
        Result<json> event = protocol::parse_json_object(*line, "event");
        if (!event && shows_too_much(*line)) {
            (void)std::fprintf(
                stderr, "cellkeep kernel: not shown: %s\n", event.error().message().c_str());
            continue;
        }
        const Status taken = event ? take_event(std::move(event.value())) : event.error();
        if (!taken) {
            set_fault(
                taken.error().message() + " (in: " + std::string(line->substr(0, kQuotedBytes)) +
                ")");
        }
    }
}

/// A driver that ends closes its events on the way.
void DriverInterpreter::note_closed() {
    pollfd ended{process_.ended_fd(), POLLIN, 0};
    const Clock::time_point deadline = Clock::now() + kClosedGrace;
    int ready = 0;
    while ((ready = ::poll(&ended, 1, milliseconds_until(deadline))) < 0 && errno == EINTR) {
    }
    if (ready == 0) {
        set_fault("it closed its events and lives on");
    }
}

/// What it said last comes first. Descriptors that others have inherited from it do not count.
void DriverInterpreter::take_end() {
    if (!fault_) {
        std::size_t left = process_.available();
        while (left > 0 && !fault_) {
            const std::size_t before = process_.available();
            const auto read = process_.read();
            if (!read || read.value() != DriverProcess::Read::kSome) {
                break;
            }
            take_lines();
            const std::size_t after = process_.available();
            left -= std::min(left, before > after ? before - after : before);
        }
        if (done_ || fault_) {
            return;  // the request is answered; its end is still there to be seen
        }
        if (ready_.is_null()) {
            set_fault("it ended " + describe_end(process_.reap()) + " before it was ready");
            return;
        }
        mirror_end();
    }
}

void DriverInterpreter::mirror_end() {
    parts().output.end_cell();
    const int status = process_.reap();
    (void)std::fflush(nullptr);
    if (WIFSIGNALED(status)) {
        const int number = WTERMSIG(status);
        (void)std::signal(number, SIG_DFL);
        sigset_t set{};
        (void)sigemptyset(&set);
        (void)sigaddset(&set, number);
        (void)::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
        (void)std::raise(number);
    }
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
}

void DriverInterpreter::take_interrupts() {
    signalfd_siginfo info{};
    bool asked = false;
    while (::read(signals_.get(), &info, sizeof(info)) > 0) {
        asked = true;
    }
    if (!asked || !interruptible_ || done_) {
        return;  // SIGINT of a waiting kernel is ignored
    }
    interrupted_ = true;
    if (about_.interrupt == protocol::InterruptBy::kSignal) {
        process_.interrupt();
    } else {
        process_.send(R"({"request":"interrupt"})");
    }
}

Status DriverInterpreter::take_event(json event) {
    const std::string kind = text_field(event, "event");
    if (ready_.is_null() != (kind == "ready")) {
        return Error(
            ErrorCode::kProtocol,
            ready_.is_null() ? "an event before the driver is ready" : "ready for the second time");
    }
    if (kind == "ready") {
        ready_ = std::move(event);
        return ok();
    }
    if (kind == "done") {
        return take_done(std::move(event));
    }
    if (kind == "input") {
        return take_input(event);
    }
    if (kind == "result" && keeps_output_) {
        const std::string text = text_field(object_field(event, "data"), "text/plain");
        if (!text.empty()) {
            history_.set_output(text);
        }
    }
    return publisher_.publish(event);
}

Status DriverInterpreter::take_done(json event) {
    const auto id = event.find("id");
    const bool ours =
        running_ && !done_ && id != event.end() && id->is_number_unsigned() && *id == *running_;
    if (!ours) {
        return Error(ErrorCode::kProtocol, "done of a request that does not run");
    }
    if (text_field(event, "status").empty()) {
        event["status"] = "ok";
    }
    done_ = std::move(event);
    return ok();
}

Status DriverInterpreter::take_input(const json& event) {
    // Behind an interrupt a question replaces the one that it ended; the answer to that is
    // nobody's.
    if (!running_ || (awaits_input_ && !interrupted_)) {
        return Error(
            ErrorCode::kProtocol,
            running_ ? "a question before the last one was answered" : "a question of no cell");
    }
    if (!allow_stdin_) {
        process_.send(R"({"request":"input","eof":true})");
        return ok();
    }
    parts().output.flush();
    const auto password = event.find("password");
    const Status asked = parts().inbox.request_input(
        parts().outbox,
        text_field(event, "prompt"),
        password != event.end() && password->is_boolean() && password->get<bool>());
    awaits_input_ = asked.has_value();
    if (!asked) {
        process_.send(R"({"request":"input","eof":true})");  // nobody is there to answer
    }
    return ok();
}

void DriverInterpreter::answer_input() {
    const auto reply = parts().inbox.read_input();
    if (reply && !reply.value()) {
        return;  // another message; it is held
    }
    awaits_input_ = false;
    if (!reply) {
        (void)std::fprintf(stderr, "cellkeep kernel: input: %s\n", reply.error().message().c_str());
    }
    const bool eof = !reply || reply.value()->eof;
    process_.send(
        eof ? std::string(R"({"request":"input","eof":true})")
            : protocol::dump_json({{"request", "input"}, {"value", reply.value()->value}}));
}

void DriverInterpreter::set_fault(std::string_view what) {
    if (fault_) {
        return;
    }
    fault_ = Error(
        ErrorCode::kProtocol,
        "the " + about_.language + " driver broke down: " + std::string(what));
    process_.kill();
}

}  // namespace cellkeep::kernels::driver
