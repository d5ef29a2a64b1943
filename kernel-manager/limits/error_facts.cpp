// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/limits/error_facts.hpp"

#include "kernel-manager/output/reply_facts.hpp"
#include "protocol/json_string.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cellkeep::session {

namespace {

using nlohmann::json;

constexpr std::size_t kTextMax = 4096;
constexpr int kErrnoMax = 4095;  // MAX_ERRNO, include/linux/err.h

std::string text_field(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string()
               ? found->get_ref<const std::string&>().substr(0, kTextMax)
               : std::string();
}

const json& object_in(const json& object, const char* name) {
    static const json nothing = json::object();
    const auto found = object.find(name);
    return found != object.end() && found->is_object() ? *found : nothing;
}

/// The number in "[Errno 28] No space left on device", as Python's OSError prints itself.
std::optional<int> number_in(std::string_view message) {
    constexpr std::string_view kMark = "[Errno ";
    const std::size_t found = message.find(kMark);
    if (found == std::string_view::npos) {
        return std::nullopt;
    }
    int number = 0;
    std::size_t at = found + kMark.size();
    while (at < message.size() && message[at] >= '0' && message[at] <= '9' && number < kErrnoMax) {
        number = 10 * number + (message[at] - '0');
        ++at;
    }
    return number > 0 && at < message.size() && message[at] == ']' ? std::optional(number)
                                                                   : std::nullopt;
}

}  // namespace

std::optional<ErrorFacts> read_error(const protocol::Message& reply) {
    using protocol::Member;
    if (!says(reply, Member::kStatus, "error")) {
        return std::nullopt;
    }
    ErrorFacts facts;
    const auto read = [&](Member member) {
        return protocol::read_json_string(
            reply.outline().find(member, reply.content_json()), kTextMax);
    };
    facts.name = read(Member::kEname);
    facts.message = read(Member::kEvalue);
    const json metadata = reply_details(reply);
    const json& details = object_in(object_in(metadata, "cellkeep"), "error");
    facts.kind = text_field(details, "kind");
    facts.full = text_field(details, "full");
    facts.inodes = details.value("inodes", json(false)) == true;
    const auto number = details.find("errno");
    if (number != details.end() && number->is_number_integer()) {
        const auto value = number->get<std::int64_t>();
        if (value > 0 && value <= kErrnoMax) {
            facts.number = static_cast<int>(value);
        }
    } else {
        facts.number = number_in(facts.message);
    }
    return facts;
}

}  // namespace cellkeep::session
