// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/interpreter/execution_stream.hpp"

#include "kernel-manager/e2b/interpreter/result_line.hpp"
#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/http/message/text_reading.hpp"
#include "protocol/support/await.hpp"
#include "protocol/support/run_elsewhere.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::e2b {

namespace asio = boost::asio;

namespace {

using session::Execution;

/// Interrupts the run unless its client got everything: at the latest when the last holder goes,
/// for a stream whose head could not be sent is never run.
class RunHold {
 public:
    RunHold(std::shared_ptr<session::Session> session, std::shared_ptr<Execution> execution)
        : session_(std::move(session)), execution_(std::move(execution)) {}
    RunHold(const RunHold&) = delete;
    RunHold& operator=(const RunHold&) = delete;
    ~RunHold() {
        if (!execution_->result()) {
            // Ignored: it may just have ended.
            (void)session_->interrupt_execution(execution_->id());
        }
    }
    const Execution& execution() const { return *execution_; }
    Execution& execution() { return *execution_; }

 private:
    std::shared_ptr<session::Session> session_;
    std::shared_ptr<Execution> execution_;
};

std::int64_t nanoseconds_now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

/// How far a client has got.
struct Progress {
    std::uint64_t after = 0;
    bool told_error = false;
    bool finished = false;
};

std::string last_lines(const session::ExecutionResult& result, bool told_error) {
    std::string text;
    const auto ending = ending_line(result);
    if (ending && !told_error) {
        text += *ending;
    }
    if (result.execution_count) {
        text += count_line(*result.execution_count);
    }
    return text + end_line();
}

using EventLine = std::optional<protocol::TextPieces>;

/// Large results are looked into by the thread; what a stream says is only passed on.
asio::awaitable<EventLine> read_line(
    WorkThread* thread, std::shared_ptr<const session::ExecutionEvent> event, std::int64_t time) {
    const bool passed_on = event->type == "stdout" || event->type == "stderr";
    const bool is_short = event->data.size() <= http::kTextReadAtOnceBytesMax;
    if (thread == nullptr || passed_on || is_short) {
        co_return event_line(*event, time);
    }
    const auto executor = co_await asio::this_coro::executor;
    auto& io = static_cast<asio::io_context&>(executor.context());
    std::function<std::optional<EventLine>()> slice = [event, time] {
        return std::optional<EventLine>(std::in_place, event_line(*event, time));
    };
    EventLine line = co_await run_elsewhere<EventLine>(io, *thread, std::move(slice));
    co_return line;
}

/// The lines of the next event; empty: there is none.
asio::awaitable<protocol::TextPieces> take_lines(
    const Execution& execution, Progress& progress, WorkThread* thread) {
    const session::EventJournal::Next next = execution.events().after(progress.after);
    if (!next.event) {
        co_return protocol::TextPieces();
    }
    const std::int64_t now = nanoseconds_now();
    protocol::TextSplicer text;
    if (next.missed > 0) {
        text.add(missed_line(next.missed, now));
    }
    progress.after = next.event->sequence;
    progress.told_error = progress.told_error || next.event->type == "error";
    progress.finished = next.event->type == "finished";
    if (progress.finished) {
        text.add(last_lines(*execution.result(), progress.told_error));
    } else if (const auto line = co_await read_line(thread, next.event, now)) {
        text.add(*line);
    }
    co_return text.finish();
}

asio::awaitable<Status> write_all_of(http::BodyWriter& writer, protocol::TextPieces text) {
    Status status = ok();
    for (const std::string_view piece : text.views()) {
        if (status.has_value()) {
            status = co_await writer.write(piece);
        }
    }
    co_return status;
}

asio::awaitable<Status> write_run(
    http::BodyWriter& writer, std::shared_ptr<RunHold> run, WorkThread* thread) {
    const auto timer = std::make_shared<asio::steady_timer>(co_await asio::this_coro::executor);
    const auto news = run->execution().subscribe([timer] { timer->cancel(); });
    writer.watch([timer] { timer->cancel(); });
    Status status = ok();
    Progress progress;
    while (status.has_value() && !progress.finished && !writer.gone()) {
        const std::uint64_t before = progress.after;
        protocol::TextPieces lines = co_await take_lines(run->execution(), progress, thread);
        if (progress.after != before) {
            status = co_await write_all_of(writer, std::move(lines));
            continue;
        }
        timer->expires_after(kExecutionBeat);
        const auto [woken] = co_await timer->async_wait(kAwait);
        if (!woken) {
            const std::string beat = keepalive_line();
            status = co_await writer.write(beat);
        }
    }
    writer.watch({});
    if (status.has_value() && !progress.finished) {
        co_return Error(ErrorCode::kUnavailable, "The client has gone.");
    }
    co_return status;
}

}  // namespace

http::Response execution_answer(
    std::shared_ptr<session::Session> session,
    std::shared_ptr<Execution> execution,
    WorkThread* work_thread) {
    auto run = std::make_shared<RunHold>(std::move(session), std::move(execution));
    http::Response response;
    response.headers.add("Content-Type", "application/json");
    // Proxies that gather answers before they pass them on are asked not to.
    response.headers.add("X-Accel-Buffering", "no");
    response.body = http::StreamBody{[run = std::move(run), work_thread](http::BodyWriter& writer) {
        return write_run(writer, run, work_thread);
    }};
    return response;
}

}  // namespace cellkeep::e2b
