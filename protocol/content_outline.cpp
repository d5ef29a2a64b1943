// SPDX-License-Identifier: Apache-2.0
#include "protocol/content_outline.hpp"

#include "protocol/json_string.hpp"

#include <string>
#include <utility>

namespace cellkeep::protocol {

namespace {

constexpr std::array<std::pair<std::string_view, Member>, kMembers - 1> kOutermost{
    {{"data", Member::kData},
     {"metadata", Member::kMetadata},
     {"transient", Member::kTransient},
     {"name", Member::kName},
     {"text", Member::kText},
     {"ename", Member::kEname},
     {"evalue", Member::kEvalue},
     {"traceback", Member::kTraceback},
     {"execution_count", Member::kExecutionCount},
     {"execution_state", Member::kExecutionState},
     {"status", Member::kStatus},
     {"wait", Member::kWait},
     {"stop_on_error", Member::kStopOnError},
     {"arguments", Member::kArguments}}};
constexpr std::string_view kDisplayIdName = "display_id";
constexpr std::size_t kNameBytesMax = 15;  // execution_count, execution_state

/// What the key says, if it can be one that is known: a key may be written in escapes.
std::string read_key(std::string_view quoted) {
    return quoted.size() > 2 + kNameBytesMax * 6 ? std::string() : read_json_string(quoted);
}

std::optional<Member> find_outermost(std::string_view quoted) {
    const std::string name = read_key(quoted);
    for (const auto& [known, member] : kOutermost) {
        if (known == name) {
            return member;
        }
    }
    return std::nullopt;
}

}  // namespace

std::string_view ContentOutline::find(Member member, std::string_view content) const {
    const Place& place = places[static_cast<std::size_t>(member)];
    return valid && place.end > 0 ? content.substr(place.begin, place.end - place.begin)
                                  : std::string_view();
}

bool ContentScan::advance(std::string_view text, std::size_t bytes) {
    text_ = text;
    const JsonScanner::State state = scanner_.advance(text, bytes);
    if (state == JsonScanner::State::kValid) {
        outline_.valid = starts_json_object(text);
    }
    return state != JsonScanner::State::kMore;
}

void ContentScan::on_key(std::size_t depth, JsonRange key) {
    const std::string_view quoted = text_.substr(key.begin, key.end - key.begin);
    if (depth == 1) {
        member_ = find_outermost(quoted);
        only_strings_ = true;
        if (member_ == Member::kTransient) {
            outline_.places[static_cast<std::size_t>(Member::kDisplayId)] = {};
        }
    } else if (depth == 2 && member_ == Member::kTransient) {
        inner_ =
            read_key(quoted) == kDisplayIdName ? std::optional(Member::kDisplayId) : std::nullopt;
    }
}

void ContentScan::on_value(std::size_t depth, JsonRange value) {
    const ContentOutline::Place place{
        static_cast<std::uint32_t>(value.begin), static_cast<std::uint32_t>(value.end)};
    if (depth == 2) {
        only_strings_ = only_strings_ && text_[value.begin] == '"';
        if (inner_) {
            outline_.places[static_cast<std::size_t>(*inner_)] = place;
            inner_.reset();
        }
        return;
    }
    if (depth != 1 || !member_) {
        return;
    }
    outline_.places[static_cast<std::size_t>(*member_)] = place;
    if (*member_ == Member::kTraceback) {
        outline_.plain_traceback = only_strings_ && text_[value.begin] == '[';
    }
    member_.reset();
}

ContentOutline outline_of(std::string_view content) {
    ContentScan scan;
    (void)scan.advance(content, content.size());  // true: it is the whole
    return scan.outline();
}

}  // namespace cellkeep::protocol
