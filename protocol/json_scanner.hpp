// SPDX-License-Identifier: Apache-2.0
//
// Checks JSON text without building values (RFC 8259): strict syntax, UTF-8, bounded depth.
// It works in slices, so that a text of many megabytes never holds up a thread: each call looks at
// a given number of bytes and remembers where it stopped, in a fixed amount of memory. It can also
// tell where the members of the outermost values lie. Accepts what parse_json (json.hpp) accepts,
// except that the number of values is not bounded: they cost nothing here. Not thread-safe.
#pragma once

#include "protocol/json_number.hpp"
#include "protocol/limits.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cellkeep::protocol {

/// Half-open range of bytes in a text.
struct JsonRange {
    std::size_t begin = 0;
    std::size_t end = 0;
};

/// Is called with the keys and values near the root while they are scanned. depth counts the
/// containers around: 0 is the whole text, 1 a member or element of the outermost value, 2 one of a
/// member. The calls are meaningful only if the text turns out to be valid.
class JsonListener {
 public:
    static constexpr std::size_t kDepthMax = 2;

    JsonListener() = default;
    JsonListener(const JsonListener&) = delete;
    JsonListener& operator=(const JsonListener&) = delete;
    virtual ~JsonListener() = default;
    /// The key of the value that comes next, with its quotes.
    virtual void on_key(std::size_t depth, JsonRange key) = 0;
    virtual void on_value(std::size_t depth, JsonRange value) = 0;
};

class JsonScanner {
 public:
    enum class State { kMore, kValid, kInvalid };

    /// The listener may be null; else it must outlive the scanner.
    explicit JsonScanner(JsonListener* listener = nullptr) : listener_(listener) {}

    /// Looks at about `bytes` more bytes (past them by less than kPastBytesMax, to the end of a
    /// small token). The text is the same at every call. kMore: call again.
    State advance(std::string_view text, std::size_t bytes);
    static constexpr std::size_t kPastBytesMax = 16;

    State state() const { return state_; }
    /// Bytes that have been scanned. Of an invalid text: the place of the error.
    std::size_t position() const { return at_; }
    /// Whether there was a line feed or a carriage return. In valid text it is white space between
    /// tokens, because both are escaped in a string.
    bool has_line_ends() const { return line_ends_; }

 private:
    enum class Expect {
        kValue,         // any value
        kFirstElement,  // a value or the array's end
        kFirstKey,      // a key or the object's end
        kKey,
        kColon,
        kAfterValue,  // a comma or the container's end
        kEnd,         // nothing but white space
        kString,      // the rest of a string
        kNumber,      // the rest of a number
    };

    void step(std::string_view text, std::size_t limit);
    void begin_value(std::string_view text, char first);
    void begin_string(bool is_key);
    void take_literal(std::string_view text, std::string_view literal);
    void open(bool is_object);
    void close(bool is_object);
    void end_value();
    void scan_string(std::string_view text, std::size_t limit);
    bool take_escape(std::string_view text, std::size_t& at);
    void end_string();
    void scan_number(std::string_view text, std::size_t limit);
    void finish(std::string_view text);
    void fail() { state_ = State::kInvalid; }

    JsonListener* listener_;
    State state_ = State::kMore;
    Expect expect_ = Expect::kValue;
    std::size_t at_ = 0;
    bool line_ends_ = false;

    std::size_t depth_ = 0;
    /// One bit for each open container: whether it is an object.
    std::array<std::uint64_t, limits::kJsonDepthMax / 64> objects_{};
    /// Where the value that is open at each depth near the root begins.
    std::array<std::size_t, JsonListener::kDepthMax + 1> begins_{};

    bool is_key_ = false;
    std::size_t key_begin_ = 0;

    JsonNumber number_;
};

/// Scans the whole text at once. Only for texts that the caller knows to be small.
bool is_valid_json(std::string_view text);
bool is_valid_json_object(std::string_view text);
/// Whether valid JSON text is an object.
bool starts_json_object(std::string_view text);

}  // namespace cellkeep::protocol
