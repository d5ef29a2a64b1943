// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/request_rules.hpp"
#include "kernels/python/kernel_bindings.hpp"

#include <cstdio>
#include <utility>

namespace cellkeep::kernels::python {

namespace {

/// Of what the link refuses; any other failure means that the peer is gone, which the loop sees
/// next.
Status only_refusals(Status sent) {
    if (sent.has_error() && sent.error().code() == ErrorCode::kLimitExceeded) {
        return sent;
    }
    return ok();
}

}  // namespace

bool Host::write_utf8(bool to_stderr, std::string_view text) {
    if (abandoned_) {
        return false;
    }
    const AfterWrite next =
        parts_.output.write(to_stderr ? StreamName::kStderr : StreamName::kStdout, text);
    if (next == AfterWrite::kFlush) {
        flush();
    }
    return next == AfterWrite::kSchedule;
}

void Host::flush() {
    if (abandoned_) {
        return;
    }
    const Unlocked unlocked;
    parts_.output.flush();
}

void Host::flush_c_streams() {
    const Unlocked unlocked;
    // Not every stream: another one may be locked by a thread that waits for its input.
    (void)std::fflush(stdout);
    (void)std::fflush(stderr);
}

Status Host::publish(const Payload& payload, bool more) {
    if (abandoned_) {
        return ok();
    }
    const Unlocked unlocked;
    parts_.output.flush();
    return only_refusals(parts_.outbox.publish(payload, more ? More::kYes : More::kNo));
}

Status Host::request_input(std::string_view prompt, bool password) {
    flush();
    return parts_.inbox.request_input(parts_.outbox, prompt, password);
}

Result<std::optional<InputReply>> Host::read_input() {
    const Unlocked unlocked;
    return parts_.inbox.read_input();
}

Status Host::ask(std::string_view type, std::string_view content) {
    flush();
    return parts_.inbox.ask(parts_.outbox, type, content);
}

Result<std::optional<protocol::Message>> Host::read_answer(std::string_view type) {
    const Unlocked unlocked;
    return parts_.inbox.read_answer(type);
}

std::optional<protocol::Message> Host::next_debug_request() {
    const Unlocked unlocked;
    return parts_.inbox.divert(kDebugRequest);
}

Status Host::send(protocol::Channel channel, std::string_view header, const Payload& payload) {
    if (abandoned_) {
        return ok();
    }
    const Unlocked unlocked;
    Result<std::string> sent = parts_.outbox.send(channel, header, payload);
    return sent.has_error() ? only_refusals(std::move(sent).error()) : ok();
}

void Host::abandon() {
    abandoned_ = true;
    parts_.inbox.abandon();
}

}  // namespace cellkeep::kernels::python
