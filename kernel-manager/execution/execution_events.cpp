// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/execution_events.hpp"

#include "kernel-manager/execution/error_text.hpp"
#include "kernel-manager/execution/guest_error.hpp"
#include "kernel-manager/output/reply_facts.hpp"
#include "protocol/json.hpp"

#include <string>
#include <utility>

namespace cellkeep::session {

namespace {

using protocol::Member;
using protocol::Message;
using protocol::RawJson;
using protocol::TextPieces;
using protocol::TextSplicer;

RawJson shown_object(const Message& message, Member member) {
    RawJson value = message.member(member);
    return value.is_object() ? std::move(value) : RawJson("{}");
}

void splice_bundle(TextSplicer& text, const Message& message) {
    text.add(R"({"data":)").add(shown_object(message, Member::kData));
    text.add(R"(,"metadata":)").add(shown_object(message, Member::kMetadata));
}

TextPieces stream_data(const Message& message) {
    const RawJson text = message.member(Member::kText);
    const bool is_string = text.text().starts_with('"');
    return TextSplicer()
        .add(R"({"text":)")
        .add(is_string ? text : RawJson("\"\""))
        .add("}")
        .finish();
}

TextPieces display_data(const Message& message) {
    TextSplicer text;
    splice_bundle(text, message);
    const RawJson id = message.member(Member::kDisplayId);
    if (id.text().starts_with('"') && id.text() != "\"\"") {
        text.add(R"(,"display_id":)").add(id);
    }
    return text.add("}").finish();
}

TextPieces result_data(const Message& message) {
    TextSplicer text;
    splice_bundle(text, message);
    const auto count = read_integer(message.member(Member::kExecutionCount).text());
    text.add(R"(,"execution_count":)").add(count ? std::to_string(*count) : "null");
    return text.add("}").finish();
}

TextPieces error_data(const Message& message) {
    GuestError error = read_guest_error(message);
    return TextPieces(protocol::dump_json(
        {{"name", std::move(error.name)},
         {"message", std::move(error.message)},
         {"traceback", std::move(error.traceback)}}));
}

}  // namespace

void add_output_event(Execution& execution, const protocol::Message& message) {
    const std::string& type = message.header().msg_type;
    if (type == "status" || type == "execute_input" || !message.outline().valid) {
        return;  // not output, or a guest that lies about itself
    }
    if (type == "stream") {
        execution.add_event(
            says(message, Member::kName, "stderr") ? "stderr" : "stdout", stream_data(message));
    } else if (type == "display_data") {
        execution.add_event("display", display_data(message));
    } else if (type == "update_display_data") {
        execution.add_event("update_display", display_data(message));
    } else if (type == "clear_output") {
        const bool later = message.member(Member::kWait).text() == "true";
        execution.add_event(
            "clear_output", TextPieces(later ? R"({"wait":true})" : R"({"wait":false})"));
    } else if (type == "execute_result") {
        execution.add_event("result", result_data(message));
    } else if (type == "error") {
        execution.add_event("error", error_data(message));
    }
}

}  // namespace cellkeep::session
