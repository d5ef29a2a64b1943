// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/copy_answer.hpp"

#include "protocol/internal_request.hpp"
#include "protocol/limits.hpp"
#include "protocol/message.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

namespace cellkeep::checkpoint {

namespace {

using nlohmann::json;

/// The highest that the kernel gives, on 64 bits (PID_MAX_LIMIT, proc(5)).
constexpr std::uint64_t kPidMax = 4'194'304;
constexpr std::uint64_t kCountMax = INT32_MAX;

Error nonsense() {
    return {ErrorCode::kProtocol, "checkpoint: the interpreter's answer makes no sense"};
}

std::optional<std::uint64_t> read_number(
    const json& object, const char* name, std::uint64_t minimum, std::uint64_t maximum) {
    const auto found = object.find(name);
    if (found == object.end() || !found->is_number_unsigned()) {
        return std::nullopt;
    }
    const auto value = found->get<std::uint64_t>();
    return value < minimum || value > maximum ? std::nullopt : std::optional(value);
}

Result<CopyAnswer> read_copied(const json& content) {
    const auto forked = read_number(content, "pid", 2, kPidMax);
    const auto count = read_number(content, "execution_count", 0, kCountMax);
    const auto carried = read_number(content, "carried_threads", 0, kCountMax);
    const auto goes_on = content.find("goes_on");
    const auto lost = content.find("lost");
    if (!forked || !count || !carried || goes_on == content.end() || !goes_on->is_boolean() ||
        lost == content.end() || !lost->is_object()) {
        return nonsense();
    }
    const auto threads = read_number(*lost, "threads", 0, kCountMax);
    const auto children = read_number(*lost, "children", 0, kCountMax);
    const auto sockets = read_number(*lost, "sockets", 0, kCountMax);
    const auto mappings = read_number(*lost, "shared_mappings", 0, kCountMax);
    if (!threads || !children || !sockets || !mappings) {
        return nonsense();
    }
    return CopyAnswer(Copied{
        static_cast<pid_t>(*forked),
        static_cast<std::int32_t>(*count),
        static_cast<std::uint32_t>(*carried),
        {static_cast<std::uint32_t>(*threads),
         static_cast<std::uint32_t>(*children),
         static_cast<std::uint32_t>(*sockets),
         static_cast<std::uint32_t>(*mappings)},
        goes_on->get<bool>(),
        content.value("prepares", json()) == true});
}

/// A thread can call itself anything.
std::string read_thread_name(const json& content) {
    const auto found = content.find("name");
    std::string name;
    if (found != content.end() && found->is_string()) {
        name = found->get_ref<const std::string&>().substr(0, kThreadNameMax);
    }
    const auto is_printable = [](char c) { return c >= ' ' && c <= '~'; };
    std::replace_if(name.begin(), name.end(), std::not_fn(is_printable), '?');
    return name;
}

Result<CopyAnswer> read_refusal(const json& content) {
    using Why = NotForkable::Why;
    const auto reason = content.find("evalue");
    const auto count = read_number(content, "count", 0, kCountMax);
    if (reason == content.end() || !reason->is_string() || !count) {
        return nonsense();
    }
    for (const Why why :
         {Why::kLanguage, Why::kThreads, Why::kThread, Why::kDebugger, Why::kSystem}) {
        if (reason->get_ref<const std::string&>() == to_string(why)) {
            NotForkable refused{why, static_cast<std::uint32_t>(*count), read_thread_name(content)};
            const auto carries = content.find("carries");
            refused.carries = carries == content.end() || *carries != false;
            return CopyAnswer(std::move(refused));
        }
    }
    return nonsense();
}

}  // namespace

Result<CopyAnswer> read_copy_answer(std::string_view content) {
    if (content.size() > limits::kCopyAnswerBytesMax) {
        return Error(
            ErrorCode::kProtocol,
            "checkpoint: the interpreter's answer has more than " +
                std::to_string(limits::kCopyAnswerBytesMax) + " bytes");
    }
    const Result<json> parsed = protocol::parse_json_object(content, "checkpoint reply");
    if (parsed.has_error()) {
        return nonsense();
    }
    const json& object = parsed.value();
    const auto status = object.find("status");
    if (status != object.end() && *status == "ok") {
        return read_copied(object);
    }
    const auto name = object.find("ename");
    return name != object.end() && *name == protocol::kNotForkable ? read_refusal(object)
                                                                   : Result<CopyAnswer>(nonsense());
}

}  // namespace cellkeep::checkpoint
