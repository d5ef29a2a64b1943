// SPDX-License-Identifier: Apache-2.0
//
// The places of the members of a Jupyter message's content that the server needs. Content comes
// from guests and may be of any size. One pass checks it and finds its members, in slices
// (json_scanner.hpp), and keeps nothing of it. Everything else in it stays bytes.
// Not thread-safe; ContentOutline is a value.
#pragma once

#include "protocol/json_scanner.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cellkeep::protocol {

/// Members of the content (Jupyter messaging specification 5.5, "Messages on the IOPub channel",
/// "Execution results").
enum class Member : std::uint8_t {
    kData,
    kMetadata,
    kTransient,
    kName,
    kText,
    kEname,
    kEvalue,
    kTraceback,
    kExecutionCount,
    kExecutionState,
    kStatus,
    kWait,
    kStopOnError,
    kArguments,
    kDisplayId,  // transient.display_id
};
inline constexpr std::size_t kMembers = 15;

struct ContentOutline {
    /// Whether it is a JSON object as parse_json_object accepts it, of any number of values. If it
    /// is not, no member is found.
    bool valid = false;
    /// traceback is an array of strings and nothing else.
    bool plain_traceback = false;

    /// The JSON text of a member, which is a view into the content. Of a repeated key the last one
    /// counts. "" if the member is missing.
    std::string_view find(Member member, std::string_view content) const;

    struct Place {
        std::uint32_t begin = 0;
        std::uint32_t end = 0;  // 0: not there
    };
    std::array<Place, kMembers> places{};
};

class ContentScan final : private JsonListener {
 public:
    ContentScan() : scanner_(this) {}
    ContentScan(const ContentScan&) = delete;
    ContentScan& operator=(const ContentScan&) = delete;
    ~ContentScan() override = default;

    /// As JsonScanner::advance. Precondition: at most limits::kFrameBytesMax bytes of text.
    bool advance(std::string_view text, std::size_t bytes);
    std::size_t position() const { return scanner_.position(); }
    bool has_line_ends() const { return scanner_.has_line_ends(); }
    /// Precondition: advance() has returned that it is done.
    ContentOutline outline() const { return outline_; }

 private:
    void on_key(std::size_t depth, JsonRange key) override;
    void on_value(std::size_t depth, JsonRange value) override;

    JsonScanner scanner_;
    std::string_view text_;
    std::optional<Member> member_;  // whose value comes next or is open
    std::optional<Member> inner_;   // the same inside of it
    bool only_strings_ = true;
    ContentOutline outline_;
};

/// Scans the whole content at once. Only for contents that the caller knows to be small.
ContentOutline outline_of(std::string_view content);

}  // namespace cellkeep::protocol
