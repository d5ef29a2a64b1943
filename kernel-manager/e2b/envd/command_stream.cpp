// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/envd/command_stream.hpp"

#include "kernel-manager/e2b/envd/process_order.hpp"
#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/e2b/wire/connect_stream.hpp"
#include "kernel-manager/e2b/wire/error_style.hpp"
#include "kernel-manager/e2b/wire/rpc.hpp"
#include "protocol/support/await.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace cellkeep::e2b {

namespace asio = boost::asio;

namespace {

using process::Command;

struct CommandView {
    std::shared_ptr<Command> command;
    std::uint64_t after = 0;
    std::chrono::seconds beat{0};
    std::shared_ptr<void> open;  // OpenStreams::open()
};

/// What there is to say now: output, or the end. Empty: nothing yet.
std::string take_messages(CommandView& view, bool& finished) {
    const Command& command = *view.command;
    const auto next = command.output().after(view.after);
    if (!next.text.empty()) {
        std::string text;
        if (next.missed > 0) {
            const std::string note = "\n[cellkeep: " + std::to_string(next.missed) +
                                     " bytes of output came faster than they were read]\n";
            text = frame_message(data_event(command.info(), next.stream, note));
        }
        view.after = next.end;
        return text + frame_message(data_event(command.info(), next.stream, next.text));
    }
    finished = command.end().has_value();
    return finished ? frame_message(end_event(*command.end())) + frame_end() : std::string();
}

asio::awaitable<Status> write_messages(http::BodyWriter& writer, CommandView view) {
    const auto timer = std::make_shared<asio::steady_timer>(co_await asio::this_coro::executor);
    const auto news = view.command->subscribe([timer] { timer->cancel(); });
    writer.watch([timer] { timer->cancel(); });
    const std::string start = frame_message(start_event(view.command->info()));
    Status status = co_await writer.write(start);
    bool finished = false;
    while (status.has_value() && !finished && !writer.gone()) {
        const std::string text = take_messages(view, finished);
        if (!text.empty()) {
            status = co_await writer.write(text);
            continue;
        }
        timer->expires_after(view.beat);
        const auto [woken] = co_await timer->async_wait(kAwait);
        if (!woken) {
            const std::string beat = frame_message(keepalive_event());
            status = co_await writer.write(beat);
        }
    }
    writer.watch({});
    if (status.has_value() && !finished) {
        co_return Error(ErrorCode::kUnavailable, "The client has gone.");
    }
    co_return status;
}

}  // namespace

http::Response fail_stream(const Error& error) {
    const http::Response problem = rpc_problem(error);
    std::string message = error.message();
    if (!error.hint().empty()) {
        message += " " + error.hint();
    }
    http::Response response = stream_head();
    response.body = frame_end(connect_code(problem.status), message);
    return response;
}

http::Response follow_command(
    const http::Request& request,
    std::shared_ptr<Command> command,
    std::uint64_t after,
    std::shared_ptr<void> open) {
    CommandView view{std::move(command), after, wanted_beat(request), std::move(open)};
    http::Response response = stream_head();
    response.body = http::StreamBody{[view = std::move(view)](http::BodyWriter& writer) {
        return write_messages(writer, view);
    }};
    return response;
}

std::optional<std::chrono::milliseconds> asked_time(const http::Request& request) {
    const std::string_view text = request.headers.get("Connect-Timeout-Ms");
    std::int64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data(), end, number);
    const bool plain = !text.empty() && failed == std::errc() && stop == end && number > 0;
    if (!plain) {
        return std::nullopt;
    }
    return std::min(std::chrono::milliseconds(number), kCommandTimeMax);
}

}  // namespace cellkeep::e2b
