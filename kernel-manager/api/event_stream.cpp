// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/event_stream.hpp"

#include "protocol/json.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <utility>

namespace cellkeep::agent {

namespace asio = boost::asio;

namespace {

/// The event's wire form, of what the journal keeps.
std::string render(const EventStream& stream, const session::ExecutionEvent& event) {
    if (event.type != "finished") {
        return frame_event(stream.framing, event.sequence, event.type, event.data);
    }
    const nlohmann::json data = {{"execution", stream.answer(*stream.execution)}};
    return frame_event(stream.framing, event.sequence, event.type, protocol::dump_json(data));
}

std::string render_gap(EventFraming framing, std::uint64_t after, std::uint64_t missed) {
    const nlohmann::json data = {{"from", after + 1}, {"to", after + missed}, {"events", missed}};
    return frame_event(framing, after + missed, "gap", protocol::dump_json(data));
}

}  // namespace

std::string_view media_type(EventFraming framing) {
    return framing == EventFraming::kServerSent ? "text/event-stream" : "application/x-ndjson";
}

std::string frame_event(
    EventFraming framing, std::uint64_t sequence, std::string_view type, std::string_view data) {
    std::string line = "{";
    if (sequence > 0) {
        line += "\"seq\":" + std::to_string(sequence) + ",";
    }
    line += "\"type\":\"" + std::string(type) + "\"";
    if (data.size() > 2) {
        line += ",";
        line += data.substr(1);
    } else {
        line += "}";
    }
    if (framing == EventFraming::kLines) {
        return line + "\n";
    }
    // JSON text has no line ends in it, so one data line holds it.
    std::string text;
    if (sequence > 0) {
        text = "id: " + std::to_string(sequence) + "\n";
    }
    text += "event: " + std::string(type) + "\ndata: ";
    text += line;
    text += "\n\n";
    return text;
}

asio::awaitable<Status> write_events(http::BodyWriter& writer, EventStream stream) {
    const auto timer = std::make_shared<asio::steady_timer>(co_await asio::this_coro::executor);
    auto news = stream.execution->subscribe([timer] { timer->cancel(); });
    writer.watch([timer] { timer->cancel(); });
    Status status = ok();
    bool finished = false;
    while (status.has_value() && !finished && !writer.gone()) {
        const session::EventJournal::Next next = stream.execution->events().after(stream.after);
        if (next.event) {
            std::string text;
            if (next.missed > 0) {
                text = render_gap(stream.framing, stream.after, next.missed);
            }
            text += render(stream, *next.event);
            stream.after = next.event->sequence;
            finished = next.event->type == "finished";
            status = co_await writer.write(text);
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
        if (!woken) {
            status = co_await writer.write(frame_event(stream.framing, 0, "heartbeat", "{}"));
        }
    }
    writer.watch({});
    news.reset();
    if (stream.on_disconnect && status.has_value() && finished) {
        stream.on_disconnect->dismiss();
    } else if (stream.on_disconnect) {
        stream.on_disconnect->act();
    }
    if (status.has_value() && !finished) {
        co_return Error(ErrorCode::kUnavailable, "The client has gone.");
    }
    co_return status;
}

}  // namespace cellkeep::agent
