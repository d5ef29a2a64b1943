// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/file_watch.hpp"

#include "kernel-manager/api/answers/file_answers.hpp"
#include "kernel-manager/execution/watch/tree_watch_wait.hpp"
#include "kernel-manager/http/message/negotiation.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "protocol/json.hpp"
#include "protocol/support/next_turn.hpp"

#include <boost/asio/this_coro.hpp>
#include <nlohmann/json.hpp>

#include <string_view>
#include <utility>

namespace cellkeep::api {

namespace asio = boost::asio;

namespace {

using protocol::TextPieces;
using session::FileEvent;
using session::TreeWatch;
using WaitPtr = std::shared_ptr<session::TreeWatchWait>;

const char* name_of(FileEvent::Kind kind) {
    switch (kind) {
        case FileEvent::Kind::kCreated:
            return "created";
        case FileEvent::Kind::kWritten:
            return "written";
        case FileEvent::Kind::kRemoved:
            return "removed";
        case FileEvent::Kind::kRenamed:
            return "renamed";
        case FileEvent::Kind::kAttributes:
            return "attributes";
    }
    return "written";
}

std::string render_watch_event(
    EventFraming framing, std::string_view type, const nlohmann::json& data) {
    return frame_event(framing, 0, type, TextPieces(protocol::dump_json(data))).join();
}

std::string render_file_event(EventFraming framing, const FileEvent& event) {
    nlohmann::json data = {{"path", event.path}, {"kind", event.directory ? "directory" : "file"}};
    if (event.kind == FileEvent::Kind::kRenamed) {
        data["from"] = event.from;
    }
    return render_watch_event(framing, name_of(event.kind), data);
}

std::string render_file_news(EventFraming framing, const TreeWatch::News& news) {
    std::string text;
    for (const FileEvent& event : news.events) {
        text += render_file_event(framing, event);
    }
    if (news.missed) {
        text += render_watch_event(framing, "missed", nlohmann::json::object());
    }
    return text;
}

bool has_ended(const FileWatchStream& stream) {
    const auto session = stream.session.lock();
    return session == nullptr || session->workspace().has_error();
}

/// "": nothing has happened.
std::string take_file_news(FileWatchStream& stream, bool& more, bool& finished) {
    const TreeWatch::News news = stream.watch->next();
    std::string text = render_file_news(stream.framing, news);
    const bool ended = has_ended(stream);
    more = news.more;
    finished = news.gone || ended;
    if (finished) {
        const char* reason = ended ? "session_ended" : "directory_gone";
        text += render_watch_event(stream.framing, "end", {{"reason", reason}});
    }
    return text;
}

asio::awaitable<Status> pass_file_events(
    http::BodyWriter& writer, FileWatchStream& stream, WaitPtr wait) {
    const std::string ready = render_watch_event(
        stream.framing,
        "ready",
        {{"path", stream.path},
         {"directories", stream.watch->directories()},
         {"complete", stream.watch->complete()}});
    Status status = co_await writer.write(ready);
    bool finished = false;
    // In a pause it ends whole, and its client watches again.
    while (status.has_value() && !finished && !writer.gone() && !writer.is_closing()) {
        bool more = false;
        const std::string text = take_file_news(stream, more, finished);
        if (!text.empty()) {
            status = co_await writer.write(text);
        }
        if (more || finished) {
            co_await next_turn();
            continue;
        }
        const bool silent = co_await wait->wait(stream.heartbeat);
        if (silent && status.has_value()) {
            const std::string beat =
                render_watch_event(stream.framing, "heartbeat", nlohmann::json::object());
            status = co_await writer.write(beat);
        }
    }
    if (status.has_value() && !finished && writer.gone()) {
        co_return Error(ErrorCode::kUnavailable, "The client has gone.");
    }
    co_return status;
}

http::Response watch_problem(const Error& error) {
    if (error.code() == ErrorCode::kLimitExceeded) {
        return http::to_response(http::make_problem(
            429, "too-many-watchers", "Too many clients watch files", error.message() + "."));
    }
    return error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kConflict
               ? http::to_response(http::problem_from(error))
               : file_problem(error);
}

}  // namespace

asio::awaitable<Status> write_file_events(http::BodyWriter& writer, FileWatchStream stream) {
    const auto executor = co_await asio::this_coro::executor;
    BOOST_OUTCOME_CO_TRY(const auto wait, session::TreeWatchWait::create(executor, *stream.watch));
    writer.watch([wait] { wait->wake(); });
    writer.watch_closing([wait] { wait->wake(); });
    WaitPtr shared = wait;
    Status status = co_await pass_file_events(writer, stream, std::move(shared));
    writer.watch({});
    writer.watch_closing({});
    wait->close();
    co_return status;
}

std::optional<bool> asks_for_events(const http::Request& request) {
    const auto asked = request.target.find_query("watch");
    if (!asked || *asked == "false") {
        return false;
    }
    return *asked == "true" || asked->empty() ? std::optional(true) : std::nullopt;
}

asio::awaitable<http::Response> watch_files(
    http::Request& request, std::shared_ptr<session::Session> session, std::string path) {
    const std::string recursive = request.target.find_query("recursive").value_or("false");
    if (recursive != "true" && recursive != "false") {
        co_return http::to_response(http::make_problem(400, "recursive must be true or false."));
    }
    const auto chosen = http::choose_media_type(
        request.headers.get("Accept"), {"text/event-stream", "application/x-ndjson"});
    if (!chosen) {
        co_return http::to_response(http::make_problem(
            406, "Events are given as text/event-stream or application/x-ndjson."));
    }
    auto opened = session->watch_files(
        path, recursive == "true" ? TreeWatch::Depth::kRecursive : TreeWatch::Depth::kDirectory);
    if (opened.has_error()) {
        co_return watch_problem(opened.error());
    }
    FileWatchStream stream;
    stream.watch = std::make_shared<TreeWatch>(std::move(opened).value());
    stream.session = session;
    stream.path = std::move(path);
    stream.framing = *chosen == 1 ? EventFraming::kLines : EventFraming::kServerSent;
    // The answer begins when everything that there is is watched: a client that has the head misses
    // nothing that it does from then on.
    while (!stream.watch->ready()) {
        (void)stream.watch->next();  // Ignored: what was there is no news.
        co_await next_turn();
    }
    http::Response response;
    response.headers.add("Content-Type", std::string(media_type(stream.framing)));
    // Proxies that gather answers before they pass them on are asked not to.
    response.headers.add("X-Accel-Buffering", "no");
    response.body = http::StreamBody{[stream = std::move(stream)](http::BodyWriter& writer) {
        return write_file_events(writer, stream);
    }};
    co_return response;
}

}  // namespace cellkeep::api
