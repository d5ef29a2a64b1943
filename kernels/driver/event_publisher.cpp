// SPDX-License-Identifier: Apache-2.0
#include "kernels/driver/event_publisher.hpp"

#include "protocol/base64.hpp"
#include "protocol/json.hpp"
#include "protocol/limits.hpp"

#include <cstdio>
#include <utility>
#include <vector>

namespace cellkeep::kernels::driver {

namespace {

using nlohmann::json;

Error wrong(const json& event, std::string_view what) {
    return {ErrorCode::kProtocol, "event " + text_field(event, "event") + ": " + std::string(what)};
}

}  // namespace

void EventPublisher::begin(int count, bool silent) {
    count_ = count;
    silent_ = silent;
}

Status EventPublisher::publish(const json& event) {
    const std::string kind = text_field(event, "event");
    if (kind == "stdout" || kind == "stderr") {
        return stream(kind == "stderr" ? StreamName::kStderr : StreamName::kStdout, event);
    }
    if (kind == "display") {
        return display(event);
    }
    if (kind == "result") {
        return result(event);
    }
    if (kind == "clear") {
        send("clear_output", {{"wait", flag_field(event, "wait")}});
        return ok();
    }
    if (kind == "message") {
        return message(event);
    }
    return Error(ErrorCode::kNotFound, "there is no event \"" + kind + "\"");
}

void EventPublisher::publish_error(const CodeFault& fault) {
    if (!silent_) {
        send(
            "error",
            {{"ename", fault.name}, {"evalue", fault.message}, {"traceback", fault.traceback}});
    }
}

Status EventPublisher::stream(StreamName name, const json& event) {
    const auto text = event.find("text");
    if (text == event.end() || !text->is_string()) {
        return wrong(event, "it has no text");
    }
    // Between cells no timer runs that would flush later (kSchedule).
    if (parts_.output.write(name, text->get_ref<const std::string&>()) != AfterWrite::kNothing) {
        parts_.output.flush();
    }
    return ok();
}

Status EventPublisher::display(const json& event) {
    if (!event.contains("data") || !event["data"].is_object()) {
        return wrong(event, "it has no data");
    }
    json content{{"data", event["data"]}, {"metadata", object_field(event, "metadata")}};
    content["transient"] = json::object();
    const std::string display_id = text_field(event, "display_id");
    if (!display_id.empty()) {
        content["transient"]["display_id"] = display_id;
    }
    const bool update = flag_field(event, "update");
    if (update && display_id.empty()) {
        return wrong(event, "an update has no display_id");
    }
    send(update ? "update_display_data" : "display_data", content);
    return ok();
}

Status EventPublisher::result(const json& event) {
    if (!event.contains("data") || !event["data"].is_object()) {
        return wrong(event, "it has no data");
    }
    if (!silent_) {
        send(
            "execute_result",
            {{"data", event["data"]},
             {"metadata", object_field(event, "metadata")},
             {"execution_count", count_}});
    }
    return ok();
}

Status EventPublisher::message(const json& event) {
    const std::string type = text_field(event, "type");
    if (type.empty() || type.size() > limits::kHeaderFieldBytesMax) {
        return wrong(event, "it has no type");
    }
    if (type == "status" || type == "execute_input") {
        return wrong(event, "a " + type + " is the kernel's own");
    }
    std::vector<std::string> buffers;
    if (const auto list = event.find("buffers"); list != event.end()) {
        if (!list->is_array() || list->size() > limits::kBuffersMax) {
            return wrong(event, "its buffers are no list, or too many");
        }
        for (const json& buffer : *list) {
            auto bytes = buffer.is_string()
                             ? protocol::decode_base64(buffer.get_ref<const std::string&>())
                             : std::nullopt;
            if (!bytes) {
                return wrong(event, "a buffer is no base64");
            }
            buffers.push_back(std::move(*bytes));
        }
    }
    const std::string content = protocol::dump_json(object_field(event, "content"));
    const std::string metadata = protocol::dump_json(object_field(event, "metadata"));
    send(Payload{
        .type = type,
        .content = content,
        .metadata = metadata,
        .buffers = {buffers.begin(), buffers.end()}});
    return ok();
}

void EventPublisher::send(const std::string& type, const json& content) {
    const std::string text = protocol::dump_json(content);
    send(Payload{.type = type, .content = text});
}

void EventPublisher::send(const Payload& payload) {
    parts_.output.flush();
    if (const Status sent = parts_.outbox.publish(payload);
        !sent && sent.error().code() == ErrorCode::kLimitExceeded) {
        // Any other failure: the peer is gone, and the loop will see that next.
        (void)std::fprintf(stderr, "%s\n", sent.error().message().c_str());
    }
}

}  // namespace cellkeep::kernels::driver
