// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/guest_error.hpp"

#include "kernel-manager/execution/error_text.hpp"
#include "protocol/json_string.hpp"
#include "protocol/limits.hpp"

namespace cellkeep::session {

namespace {

constexpr std::size_t kCharacterBytesMax = 4;
constexpr const char* kCutNote = "… the rest is left out …";

}  // namespace

GuestError read_guest_error(const protocol::Message& message) {
    using protocol::Member;
    const protocol::ContentOutline& outline = message.outline();
    const std::string_view content = message.content_json();
    GuestError error;
    error.name = protocol::read_json_string(
        outline.find(Member::kEname, content), limits::kHeaderFieldBytesMax);
    // A few bytes more than are kept tell whether there are more.
    std::string text = protocol::read_json_string(
        outline.find(Member::kEvalue, content), limits::kErrorTextBytesMax + kCharacterBytesMax);
    const bool cut = text.size() > limits::kErrorTextBytesMax;
    error.message = strip_escapes(text) + (cut ? std::string("\n") + kCutNote : std::string());
    const protocol::JsonStrings lines = protocol::read_json_strings(
        outline.find(Member::kTraceback, content), limits::kErrorTextBytesMax);
    for (const std::string& line : lines.strings) {
        error.traceback.push_back(strip_escapes(line));
    }
    if (!lines.complete) {
        error.traceback.emplace_back(kCutNote);
    }
    return error;
}

}  // namespace cellkeep::session
