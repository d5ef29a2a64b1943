// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/process_answers.hpp"

#include "kernel-manager/api/answers/execution_answer.hpp"
#include "kernel-manager/http/message/negotiation.hpp"
#include "kernel-manager/process/limits.hpp"
#include "protocol/base64.hpp"
#include "protocol/json.hpp"
#include "protocol/support/time.hpp"
#include "protocol/utf8.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <utility>

namespace cellkeep::api {

namespace asio = boost::asio;

namespace {

using process::CommandEnd;
using protocol::TextPieces;

/// As a shell reports a program that it could not start.
constexpr int kNotStartedCode = 127;

const char* reason_of(const CommandEnd& end) {
    switch (end.kind) {
        case CommandEnd::Kind::kExited:
            return "exited";
        case CommandEnd::Kind::kSignaled:
            return "signal";
        case CommandEnd::Kind::kFailed:
            return "not_started";
        case CommandEnd::Kind::kSessionEnded:
            return "session_ended";
    }
    return "exited";
}

std::string signal_name(int number) {
    const char* known = ::sigabbrev_np(number);
    return known == nullptr ? "SIG" + std::to_string(number) : std::string("SIG") + known;
}

nlohmann::json end_json(const CommandEnd& end) {
    nlohmann::json answer = {
        {"reason", reason_of(end)},
        {"exit_code", nullptr},
        {"signal", nullptr},
        {"error", nullptr}};
    if (end.kind == CommandEnd::Kind::kExited) {
        answer["exit_code"] = end.status;
    } else if (end.kind == CommandEnd::Kind::kSignaled) {
        answer["signal"] = signal_name(end.status);
    } else if (end.kind == CommandEnd::Kind::kFailed) {
        answer["exit_code"] = kNotStartedCode;
        answer["error"] = end.failure;
    }
    return answer;
}

bool is_text(std::string_view bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t length = protocol::utf8_length(bytes, at);
        if (length == 0) {
            return false;
        }
        at += length;
    }
    return true;
}

std::string render_output(EventFraming framing, const process::CommandOutput::Next& next) {
    const char* type = next.stream == process::Stream::kStdout ? "stdout" : "stderr";
    const nlohmann::json data =
        is_text(next.text) ? nlohmann::json{{"text", next.text}}
                           : nlohmann::json{{"base64", protocol::encode_base64(next.text)}};
    return frame_event(framing, next.end, type, TextPieces(protocol::dump_json(data))).join();
}

std::string render_missed(EventFraming framing, std::uint64_t after, std::uint64_t missed) {
    const nlohmann::json data = {{"from", after}, {"to", after + missed}, {"bytes", missed}};
    return frame_event(framing, after + missed, "gap", TextPieces(protocol::dump_json(data)))
        .join();
}

std::string render_end(EventFraming framing, const process::Command& command) {
    const nlohmann::json data = {{"process", to_json(command.info())}};
    return frame_event(
               framing,
               command.output().total() + 1,
               "exited",
               TextPieces(protocol::dump_json(data)))
        .join();
}

}  // namespace

std::string take_news(ProcessStream& stream, bool& finished) {
    const auto next = stream.command->read_after(stream.after);
    if (!next.text.empty()) {
        std::string text = next.missed > 0
                               ? render_missed(stream.framing, stream.after, next.missed)
                               : std::string();
        stream.after = next.end;
        return text + render_output(stream.framing, next);
    }
    finished = stream.command->end().has_value();
    return finished ? render_end(stream.framing, *stream.command) : std::string();
}

nlohmann::json to_json(const process::CommandInfo& info) {
    nlohmann::json answer = {
        {"id", info.id},
        {"label", nullptr},
        {"argv", info.argv},
        {"cwd", info.directory},
        {"pid", nullptr},
        {"state", info.end ? "exited" : "running"},
        {"stdin", info.input_open ? "open" : "closed"},
        {"tty", nullptr},
        {"end", nullptr},
        {"output", {{"bytes", info.output_bytes}, {"kept_from", info.output_kept_from}}},
        {"started_at", to_iso8601(info.started_at)},
        {"ended_at", nullptr}};
    if (info.label) {
        answer["label"] = *info.label;
    }
    if (info.terminal) {
        answer["tty"] = {{"rows", info.terminal->rows}, {"cols", info.terminal->columns}};
    }
    if (info.pid > 0) {
        answer["pid"] = info.pid;
    }
    if (info.end) {
        answer["end"] = end_json(*info.end);
        answer["ended_at"] = to_iso8601(info.ended_at);
    }
    return answer;
}

nlohmann::json process_limits() {
    return {
        {"running", process::kCommandsMax},
        {"terminals", process::kTerminalsMax},
        {"ended", process::kEndedCommandsMax},
        {"output_bytes", process::kOutputBytesMax},
        {"stdin_bytes", process::kInputBytesMax}};
}

http::Problem no_process(const std::string& id) {
    return http::make_problem(
        404,
        "unknown-process",
        "No such process",
        "The session has no process " + id + ", or it is no longer remembered.");
}

asio::awaitable<Status> write_process_events(http::BodyWriter& writer, ProcessStream stream) {
    const auto timer = std::make_shared<asio::steady_timer>(co_await asio::this_coro::executor);
    const auto news = stream.command->subscribe([timer] { timer->cancel(); });
    writer.watch([timer] { timer->cancel(); });
    writer.watch_closing([timer] { timer->cancel(); });
    Status status = ok();
    bool finished = false;
    // Another program is to take the server's place: the client goes on with that.
    const auto is_left = [&] { return writer.is_closing() && !stream.command->end(); };
    while (status.has_value() && !finished && !writer.gone() && !is_left()) {
        const std::string text = take_news(stream, finished);
        if (!text.empty()) {
            status = co_await writer.write(text);
            continue;
        }
        // Nothing can happen between the look and the wait: all is on one thread.
        timer->expires_after(stream.heartbeat);
        boost::system::error_code woken;
        co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, woken));
        if (!woken) {
            const std::string beat =
                frame_event(stream.framing, 0, "heartbeat", TextPieces("{}")).join();
            status = co_await writer.write(beat);
        }
    }
    writer.watch({});
    writer.watch_closing({});
    if (status.has_value() && !finished && writer.gone()) {
        co_return Error(ErrorCode::kUnavailable, "The client has gone.");
    }
    co_return status;
}

http::Response follow_process(
    const http::Request& request, std::shared_ptr<process::Command> command) {
    const auto chosen = http::choose_media_type(
        request.headers.get("Accept"), {"text/event-stream", "application/x-ndjson"});
    if (!chosen) {
        return http::to_response(http::make_problem(
            406, "Events are given as text/event-stream or application/x-ndjson."));
    }
    const auto after = asked_place(request);
    if (!after) {
        return http::to_response(bad_place());
    }
    const std::uint64_t total = command->output().total();
    if (command->end() && *after > total) {
        return http::make_empty(204);  // an EventSource comes back until it gets this
    }
    ProcessStream stream;
    stream.framing = *chosen == 1 ? EventFraming::kLines : EventFraming::kServerSent;
    stream.after = std::min(*after, total);
    stream.command = std::move(command);
    http::Response response;
    response.headers.add("Content-Type", std::string(media_type(stream.framing)));
    // Proxies that gather answers before they pass them on are asked not to.
    response.headers.add("X-Accel-Buffering", "no");
    response.body = http::StreamBody{[stream = std::move(stream)](http::BodyWriter& writer) {
        return write_process_events(writer, stream);
    }};
    return response;
}

}  // namespace cellkeep::api
