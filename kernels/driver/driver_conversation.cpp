// SPDX-License-Identifier: Apache-2.0
#include "kernels/driver/driver_conversation.hpp"

#include "kernels/driver/event_fields.hpp"
#include "kernels/driver/exit_status.hpp"
#include "protocol/json.hpp"
#include "protocol/tool_request.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace cellkeep::kernels::driver {

namespace {

using nlohmann::json;

/// How much of a wrong line its error quotes.
constexpr std::size_t kQuotedBytes = 200;
/// Where the name of an event is looked for in its line.
constexpr std::size_t kEventHeadBytes = 40;
constexpr int kForEver = -1;
constexpr std::string_view kEndOfInput = R"({"request":"input","eof":true})";

/// Whole milliseconds, rounded up: rounded down, poll(2) would wake up early and often.
int milliseconds_until(std::chrono::steady_clock::time_point when) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(when - std::chrono::steady_clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1'000'000));
}

/// Whether parse_json refused the line only because the value that it shows is nested too deeply
/// or too large. The value is the user's, so this is no fault of the driver. The line's first
/// member says what it is.
bool shows_too_much(std::string_view line) {
    std::string head(line.substr(0, kEventHeadBytes));
    head.erase(std::remove(head.begin(), head.end(), ' '), head.end());
    const bool shows =
        head.rfind(R"({"event":"display",)", 0) == 0 || head.rfind(R"({"event":"result",)", 0) == 0;
    return shows && protocol::is_json(line);
}

}  // namespace

DriverConversation::DriverConversation(
    const KernelParts& parts,
    DriverProcess process,
    InterruptSignals signals,
    ConversationRules rules,
    TakeEvent take_event)
    : parts_(parts),
      process_(std::move(process)),
      signals_(std::move(signals)),
      rules_(std::move(rules)),
      take_event_(std::move(take_event)) {}

Status DriverConversation::wait_until_ready() {
    const Wanted wanted{-1, Clock::now() + rules_.ready_max};
    while (ready_.is_null() && !fault_) {
        if (wait(wanted) == Woken::kDeadline && ready_.is_null()) {
            set_fault(
                "it was not ready within " + std::to_string(rules_.ready_max.count()) + " ms");
        }
    }
    return fault_ ? Status(*fault_) : ok();
}

std::optional<json> DriverConversation::ask(json request, RequestRules rules) {
    if (fault_) {
        return std::nullopt;
    }
    if (rules.interruptible) {
        settle_interrupt();
    }
    request["id"] = request_.begin(rules);
    process_.send(protocol::dump_json(request));
    Wanted wanted;
    if (!rules.interruptible) {
        wanted.deadline = Clock::now() + rules_.answer_max;
    }
    while (!request_.is_done() && !fault_) {
        wanted.link = request_.awaits_answer() ? parts_.inbox.fd() : -1;
        switch (wait(wanted)) {
            case Woken::kLink:
                answer_question();
                break;
            case Woken::kDeadline:
                set_fault("it does not answer " + text_field(request, "request"));
                break;
            case Woken::kOther:
                break;
        }
    }
    return request_.end();
}

/// An interrupt may have reached the driver when its cell had just ended. The driver forgets it
/// when it reads this request, before the next cell begins.
void DriverConversation::settle_interrupt() {
    if (request_.forget_interrupt() && rules_.interrupt == protocol::InterruptBy::kSignal) {
        (void)ask({{"request", "is_complete"}, {"code", ""}});
    }
}

Status DriverConversation::wait_readable(int fd) {
    while (true) {
        if (fault_) {
            return *fault_;
        }
        // Every interrupt that is here by now was for a cell that has ended.
        take_interrupts();
        if (parts_.inbox.has_held() || wait({fd, std::nullopt}) == Woken::kLink) {
            take_interrupts();
            return ok();
        }
    }
}

DriverConversation::Woken DriverConversation::wait(const Wanted& wanted) {
    const bool takes_interrupts = request_.is_interruptible() || !request_.is_running();
    enum { kEvents, kEnded, kSignals, kLink, kRequests, kWaits };
    std::array<pollfd, kWaits> waits{
        pollfd{process_.events_fd(), POLLIN, 0},
        pollfd{process_.ended_fd(), POLLIN, 0},
        pollfd{takes_interrupts ? signals_.fd() : -1, POLLIN, 0},
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

void DriverConversation::read_events() {
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

void DriverConversation::take_lines() {
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
        const Status taken = event ? take(std::move(event.value())) : event.error();
        if (!taken) {
            set_fault(
                taken.error().message() + " (in: " + std::string(line->substr(0, kQuotedBytes)) +
                ")");
        }
    }
}

/// A driver that ends closes its events first. One that closes them and goes on is at fault.
void DriverConversation::note_closed() {
    pollfd ended{process_.ended_fd(), POLLIN, 0};
    const Clock::time_point deadline = Clock::now() + kClosedGrace;
    int ready = 0;
    while ((ready = ::poll(&ended, 1, milliseconds_until(deadline))) < 0 && errno == EINTR) {
    }
    if (ready == 0) {
        set_fault("it closed its events and lives on");
    }
}

/// Takes the driver's last events before its end.
void DriverConversation::take_end() {
    if (fault_) {
        return;
    }
    read_what_is_left();
    if (request_.is_done() || fault_) {
        return;  // The request is answered. The next wait sees the end again.
    }
    if (ready_.is_null()) {
        set_fault("it ended " + describe_exit(process_.reap()) + " before it was ready");
        return;
    }
    parts_.output.end_cell();
    exit_like(process_.reap());
}

/// Reads what the pipe holds now. A process that has inherited the pipe may keep it open and write
/// on: that is no longer the driver's.
void DriverConversation::read_what_is_left() {
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
}

/// A SIGINT that no running cell can take is ignored.
void DriverConversation::take_interrupts() {
    if (!signals_.drain() || !request_.take_interrupt()) {
        return;
    }
    if (rules_.interrupt == protocol::InterruptBy::kSignal) {
        process_.interrupt();
    } else {
        process_.send(R"({"request":"interrupt"})");
    }
}

Status DriverConversation::take(json event) {
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
        return request_.take_done(std::move(event));
    }
    if (kind == "input") {
        return take_question(event);
    }
    if (is_tool_question(kind)) {
        return take_tool_question(event);
    }
    return take_event_(event);
}

Status DriverConversation::take_question(const json& event) {
    BOOST_OUTCOME_TRY(
        const RunningRequest::Answer answer, request_.take_question(RunningRequest::Asks::kInput));
    if (answer == RunningRequest::Answer::kRefuse) {
        process_.send(kEndOfInput);
        return ok();
    }
    asked_tool_.reset();
    parts_.output.flush();
    const Status asked = parts_.inbox.request_input(
        parts_.outbox, text_field(event, "prompt"), flag_field(event, "password"));
    request_.set_awaits_answer(asked.has_value());
    if (!asked) {
        process_.send(kEndOfInput);  // no client can answer
    }
    return ok();
}

Status DriverConversation::take_tool_question(const json& event) {
    BOOST_OUTCOME_TRY(
        const RunningRequest::Answer answer, request_.take_question(RunningRequest::Asks::kTool));
    BOOST_OUTCOME_TRY(ToolQuestion question, read_tool_question(event));
    if (answer == RunningRequest::Answer::kRefuse) {
        process_.send(refuse_tool_question(
            question, kNoCaller, "Tools can be called while a cell runs, by its own process."));
        return ok();
    }
    parts_.output.flush();
    const Status asked = parts_.inbox.ask(parts_.outbox, question.type, question.content);
    request_.set_awaits_answer(asked.has_value());
    if (asked) {
        asked_tool_ = std::move(question);
    } else {
        const bool too_large = asked.error().code() == ErrorCode::kLimitExceeded;
        process_.send(refuse_tool_question(
            question,
            too_large ? protocol::kToolRefusedTooLarge : protocol::kToolRefusedFailed,
            asked.error().message()));
    }
    return ok();
}

void DriverConversation::answer_question() {
    if (asked_tool_) {
        answer_tool();
    } else {
        answer_input();
    }
}

void DriverConversation::answer_tool() {
    const auto reply = parts_.inbox.read_answer(asked_tool_->reply_type);
    if (reply && !reply.value()) {
        return;  // another message; the inbox holds it
    }
    request_.set_awaits_answer(false);
    const ToolQuestion question = *std::exchange(asked_tool_, std::nullopt);
    process_.send(
        reply ? answer_tool_question(question, reply.value()->content_json())
              : refuse_tool_question(
                    question, protocol::kToolRefusedFailed, reply.error().message()));
}

void DriverConversation::answer_input() {
    const auto reply = parts_.inbox.read_input();
    if (reply && !reply.value()) {
        return;  // another message; the inbox holds it
    }
    request_.set_awaits_answer(false);
    if (!reply) {
        (void)std::fprintf(stderr, "cellkeep kernel: input: %s\n", reply.error().message().c_str());
    }
    const bool eof = !reply || reply.value()->eof;
    process_.send(
        eof ? std::string(kEndOfInput)
            : protocol::dump_json({{"request", "input"}, {"value", reply.value()->value}}));
}

void DriverConversation::set_fault(std::string_view what) {
    if (fault_) {
        return;
    }
    fault_ = Error(
        ErrorCode::kProtocol,
        "the " + rules_.language + " driver broke down: " + std::string(what));
    process_.kill();
}

void DriverConversation::end() {
    if (!std::exchange(ended_, true)) {
        process_.end();
    }
}

}  // namespace cellkeep::kernels::driver
