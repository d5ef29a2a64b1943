// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/event_stream.hpp"

#include "protocol/json.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <utility>

namespace cellkeep::api {

namespace asio = boost::asio;

namespace {

using protocol::TextPieces;
using protocol::TextSplicer;

/// The event's wire form, of what the journal keeps.
TextPieces render(const EventStream& stream, const session::ExecutionEvent& event) {
    if (event.type != "finished") {
        return frame_event(stream.framing, event.sequence, event.type, event.data);
    }
    const TextPieces data = TextSplicer()
                                .add(R"({"execution":)")
                                .add(stream.answer(*stream.execution))
                                .add("}")
                                .finish();
    return frame_event(stream.framing, event.sequence, event.type, data);
}

TextPieces render_gap(EventFraming framing, std::uint64_t after, std::uint64_t missed) {
    const nlohmann::json data = {{"from", after + 1}, {"to", after + missed}, {"events", missed}};
    return frame_event(framing, after + missed, "gap", TextPieces(protocol::dump_json(data)));
}

asio::awaitable<Status> write_pieces(http::BodyWriter& writer, TextPieces text) {
    Status status = ok();
    for (const std::string_view piece : text.views()) {
        if (status.has_value()) {
            status = co_await writer.write(piece);
        }
    }
    co_return status;
}

/// What another program needs to go on behind the last event that the client has.
void await_news(
    http::BodyWriter& writer,
    EventStream& stream,
    const std::shared_ptr<asio::steady_timer>& timer) {
    if (!stream.awaited.is_null()) {
        stream.awaited["after"] = stream.after;
        writer.await(protocol::dump_json(stream.awaited), [timer] { timer->cancel(); });
    }
}

/// The stream ends here.
Status end_stream(EventStream& stream, Status status, bool finished, bool passed) {
    if (stream.on_disconnect && (passed || (status.has_value() && finished))) {
        stream.on_disconnect->dismiss();
    } else if (stream.on_disconnect) {
        stream.on_disconnect->act();
    }
    if (status.has_value() && !finished) {
        return Error(ErrorCode::kUnavailable, "The client has gone.");
    }
    return status;
}

}  // namespace

std::string_view media_type(EventFraming framing) {
    return framing == EventFraming::kServerSent ? "text/event-stream" : "application/x-ndjson";
}

TextPieces frame_event(
    EventFraming framing, std::uint64_t sequence, std::string_view type, const TextPieces& data) {
    TextSplicer text;
    if (framing == EventFraming::kServerSent) {
        if (sequence > 0) {
            text.add("id: ").add(std::to_string(sequence)).add("\n");
        }
        text.add("event: ").add(type).add("\ndata: ");
    }
    text.add("{");
    if (sequence > 0) {
        text.add("\"seq\":").add(std::to_string(sequence)).add(",");
    }
    text.add("\"type\":\"").add(type).add("\"");
    if (data.size() > 2) {
        text.add(",").add(data.without_first());
    } else {
        text.add("}");
    }
    // There are no line ends in it, so one data line holds it.
    return text.add(framing == EventFraming::kLines ? "\n" : "\n\n").finish();
}

asio::awaitable<Status> write_events(http::BodyWriter& writer, EventStream stream) {
    const auto timer = std::make_shared<asio::steady_timer>(co_await asio::this_coro::executor);
    auto news = stream.execution->subscribe([timer] { timer->cancel(); });
    writer.watch([timer] { timer->cancel(); });
    Status status = ok();
    bool finished = false;
    while (status.has_value() && !finished && !writer.gone() && !writer.is_passed()) {
        await_news(writer, stream, timer);
        // What is left of one that has finished is bounded: the pause waits for it.
        const bool is_held =
            !stream.awaited.is_null() && writer.is_held() && !stream.execution->result();
        const session::EventJournal::Next next = stream.execution->events().after(stream.after);
        if (next.event && !is_held) {
            TextSplicer text;
            if (next.missed > 0) {
                text.add(render_gap(stream.framing, stream.after, next.missed));
            }
            text.add(render(stream, *next.event));
            stream.after = next.event->sequence;
            finished = next.event->type == "finished";
            status = co_await write_pieces(writer, text.finish());
            continue;
        }
        if (stream.execution->result()) {
            finished = true;  // the client named a later event than there was ever to be
            continue;
        }
        // Nothing can happen between the look and the wait: all is on one thread.
        timer->expires_after(stream.heartbeat);
        boost::system::error_code woken;
        co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, woken));
        if (!woken && !is_held) {
            status = co_await write_pieces(
                writer, frame_event(stream.framing, 0, "heartbeat", TextPieces("{}")));
        }
    }
    writer.watch({});
    writer.await({}, nullptr);
    news.reset();
    co_return end_stream(stream, std::move(status), finished, writer.is_passed());
}

}  // namespace cellkeep::api
