// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/envd/watch_routes.hpp"

#include "kernel-manager/e2b/envd/command_stream.hpp"
#include "kernel-manager/e2b/envd/guest_path.hpp"
#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/e2b/wire/connect_stream.hpp"
#include "kernel-manager/e2b/wire/fields.hpp"
#include "kernel-manager/execution/watch/tree_watch_wait.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "protocol/support/next_turn.hpp"
#include "protocol/support/syscall.hpp"

#include <boost/asio/this_coro.hpp>

#include <chrono>
#include <utility>

namespace cellkeep::e2b {

namespace asio = boost::asio;

namespace {

using session::FileEvent;
using session::TreeWatch;

constexpr std::size_t kWatcherIdBytes = 12;
constexpr std::size_t kWatcherIdCharactersMax = 64;

struct WatchStream {
    WatchedDirectory directory;
    std::weak_ptr<session::Session> session;
    std::chrono::milliseconds beat{0};
    std::shared_ptr<void> open;  // OpenStreams::open()
};

Result<WatchedDirectory> open_watched(session::Session& session, const nlohmann::json& request) {
    Fields fields(request);
    const std::string path = fields.text("path", kGuestPathBytesMax).value_or("");
    const bool recursive = fields.boolean("recursive").value_or(false);
    if (!fields.good()) {
        return fields.error();
    }
    BOOST_OUTCOME_TRY(GuestPath place, parse_guest_path(path));
    BOOST_OUTCOME_TRY(const auto workspace, session.workspace());
    const auto there = workspace.state(place.inside);
    if (there.has_value() && there.value().kind != sandbox::EntryKind::kDirectory) {
        return Error(ErrorCode::kInvalidArgument, "path " + place.shown + " is not a directory");
    }
    auto opened = session.watch_files(
        place.inside, recursive ? TreeWatch::Depth::kRecursive : TreeWatch::Depth::kDirectory);
    if (opened.has_error()) {
        return opened.error().code() == ErrorCode::kNotFound
                   ? Error(ErrorCode::kNotFound, "path " + place.shown + " not found")
                   : std::move(opened).error();
    }
    return WatchedDirectory{
        std::make_shared<TreeWatch>(std::move(opened).value()), std::move(place.inside)};
}

asio::awaitable<void> await_ready(std::shared_ptr<TreeWatch> watch) {
    while (!watch->ready()) {
        (void)watch->next();  // Ignored: what was there is no news.
        co_await next_turn();
    }
}

nlohmann::json event_json(const std::string& path, const std::string& inside, const char* type) {
    const std::size_t skipped = inside.empty() ? 0 : inside.size() + 1;
    return {{"name", path.substr(skipped)}, {"type", type}};
}

std::string frame_news(const TreeWatch::News& news, const std::string& inside) {
    std::string text;
    for (const FileEvent& event : news.events) {
        for (nlohmann::json& one : filesystem_events(event, inside)) {
            text += frame_message({{"filesystem", std::move(one)}});
        }
    }
    return text;
}

bool is_over(const WatchStream& stream, const TreeWatch::News& news) {
    const auto session = stream.session.lock();
    return news.gone || session == nullptr || session->workspace().has_error();
}

asio::awaitable<Status> pass_watch(
    http::BodyWriter& writer, WatchStream& stream, std::shared_ptr<session::TreeWatchWait> wait) {
    const std::string start = frame_message({{"start", nlohmann::json::object()}});
    Status status = co_await writer.write(start);
    bool over = false;
    while (status.has_value() && !over && !writer.gone()) {
        const TreeWatch::News news = stream.directory.watch->next();
        over = is_over(stream, news);
        std::string text = frame_news(news, stream.directory.inside);
        text += over ? frame_end() : std::string();
        if (!text.empty()) {
            status = co_await writer.write(text);
        }
        if (news.more || over) {
            co_await next_turn();
            continue;
        }
        const bool silent = co_await wait->wait(stream.beat);
        if (silent && status.has_value()) {
            const std::string beat = frame_message({{"keepalive", nlohmann::json::object()}});
            status = co_await writer.write(beat);
        }
    }
    if (status.has_value() && !over) {
        co_return Error(ErrorCode::kUnavailable, "The client has gone.");
    }
    co_return status;
}

asio::awaitable<Status> write_watch(http::BodyWriter& writer, WatchStream stream) {
    const auto executor = co_await asio::this_coro::executor;
    BOOST_OUTCOME_CO_TRY(
        const auto wait, session::TreeWatchWait::create(executor, *stream.directory.watch));
    writer.watch([wait] { wait->wake(); });
    std::shared_ptr<session::TreeWatchWait> shared = wait;
    Status status = co_await pass_watch(writer, stream, std::move(shared));
    writer.watch({});
    wait->close();
    co_return status;
}

asio::awaitable<http::Response> watch_directory(
    http::Request& request, RpcSession session, OpenStreams& streams) {
    if (auto refused = refuse_media_type(request, "application/connect+json")) {
        co_return std::move(*refused);
    }
    const auto message = co_await take_only_message(request);
    if (message.has_error()) {
        co_return http::to_response(http::make_problem(400, message.error().message()));
    }
    auto opened = open_watched(*session, message.value());
    if (opened.has_error()) {
        co_return fail_stream(opened.error());
    }
    WatchStream stream;
    stream.directory = std::move(opened).value();
    stream.session = session;
    stream.beat = wanted_beat(request);
    stream.open = streams.open(session->id());
    std::shared_ptr<TreeWatch> watch = stream.directory.watch;
    co_await await_ready(std::move(watch));
    http::Response response = stream_head();
    response.body = http::StreamBody{[stream = std::move(stream)](http::BodyWriter& writer) {
        return write_watch(writer, stream);
    }};
    co_return response;
}

Result<std::string> asked_watcher(const nlohmann::json& request) {
    Fields fields(request);
    std::string id = fields.text("watcherId", kWatcherIdCharactersMax).value_or("");
    if (!fields.good()) {
        return fields.error();
    }
    return id;
}

}  // namespace

std::vector<nlohmann::json> filesystem_events(const FileEvent& event, const std::string& inside) {
    switch (event.kind) {
        case FileEvent::Kind::kCreated:
            if (event.directory) {
                return {event_json(event.path, inside, "EVENT_TYPE_CREATE")};
            }
            // One that a client has sent comes with all that is in it.
            return {
                event_json(event.path, inside, "EVENT_TYPE_CREATE"),
                event_json(event.path, inside, "EVENT_TYPE_WRITE")};
        case FileEvent::Kind::kWritten:
            return {event_json(event.path, inside, "EVENT_TYPE_WRITE")};
        case FileEvent::Kind::kRemoved:
            return {event_json(event.path, inside, "EVENT_TYPE_REMOVE")};
        case FileEvent::Kind::kAttributes:
            return {event_json(event.path, inside, "EVENT_TYPE_CHMOD")};
        case FileEvent::Kind::kRenamed:
            break;
    }
    return {
        event_json(event.from, inside, "EVENT_TYPE_RENAME"),
        event_json(event.path, inside, "EVENT_TYPE_CREATE")};
}

Result<nlohmann::json> Watchers::create(const std::string& session_id, WatchedDirectory directory) {
    BOOST_OUTCOME_TRY(const auto id, random_hex(kWatcherIdBytes));
    by_session_[session_id].emplace(id, std::move(directory));
    return nlohmann::json{{"watcherId", id}};
}

Result<nlohmann::json> Watchers::take(
    const std::string& session_id, const std::string& watcher_id) {
    auto& watchers = by_session_[session_id];
    const auto found = watchers.find(watcher_id);
    if (found == watchers.end()) {
        return Error(ErrorCode::kNotFound, "watcher with id " + watcher_id + " not found");
    }
    nlohmann::json events = nlohmann::json::array();
    bool more = true;
    for (int i = 0; more && i < kWatcherReadsMax && events.size() < kWatcherEventsMax; ++i) {
        const TreeWatch::News news = found->second.watch->next();
        for (const FileEvent& event : news.events) {
            for (nlohmann::json& one : filesystem_events(event, found->second.inside)) {
                events.push_back(std::move(one));
            }
        }
        more = news.more;
    }
    return nlohmann::json{{"events", std::move(events)}};
}

Status Watchers::remove(const std::string& session_id, const std::string& watcher_id) {
    if (by_session_[session_id].erase(watcher_id) == 0) {
        return Error(ErrorCode::kNotFound, "watcher with id " + watcher_id + " not found");
    }
    return ok();
}

bool Watchers::any(const std::string& session_id) const {
    const auto found = by_session_.find(session_id);
    return found != by_session_.end() && !found->second.empty();
}

void add_watch_rpcs(
    http::Router& router, const SandboxDoor& door, Watchers& watchers, OpenStreams& streams) {
    using RpcAnswering = asio::awaitable<Result<nlohmann::json>>;
    const std::string service = "filesystem.Filesystem/";
    http::Route stream(
        http::Access::kChange,
        "POST",
        rpc_pattern(service + "WatchDir"),
        door.with_session([&streams](http::Request& request, RpcSession session) {
            return watch_directory(request, std::move(session), streams);
        }));
    stream.body_bytes_max = kMessageBytesMax;
    router.add(std::move(stream));
    const auto create = [&watchers](RpcSession session, nlohmann::json request) -> RpcAnswering {
        BOOST_OUTCOME_CO_TRY(auto directory, open_watched(*session, request));
        std::shared_ptr<TreeWatch> watch = directory.watch;
        co_await await_ready(std::move(watch));
        // A session that has ended meanwhile is forgotten already.
        BOOST_OUTCOME_CO_TRY(session->workspace());
        co_return watchers.create(session->id(), std::move(directory));
    };
    const auto take = [&watchers](RpcSession session, nlohmann::json request) -> RpcAnswering {
        BOOST_OUTCOME_CO_TRY(const std::string id, asked_watcher(request));
        co_return watchers.take(session->id(), id);
    };
    const auto remove = [&watchers](RpcSession session, nlohmann::json request) -> RpcAnswering {
        BOOST_OUTCOME_CO_TRY(const std::string id, asked_watcher(request));
        BOOST_OUTCOME_CO_TRY(watchers.remove(session->id(), id));
        co_return nlohmann::json::object();
    };
    add_unary(router, door, service + "CreateWatcher", create);
    add_unary(router, door, service + "GetWatcherEvents", take);
    add_unary(router, door, service + "RemoveWatcher", remove);
}

}  // namespace cellkeep::e2b
