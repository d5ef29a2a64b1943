// SPDX-License-Identifier: Apache-2.0
#include "protocol/json.hpp"

#include "protocol/limits.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace cellkeep::protocol {

namespace {

using nlohmann::json;

/// nlohmann's lexer skips it. What is accepted is also spliced into other texts, where it would not
/// be JSON; RFC 8259, section 8.1, allows either.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Builds the value while it counts the nesting, so that one pass both parses and bounds. nlohmann's
// parser keeps its own stack on the heap; only dump() and comparison recurse, and those see at most
// kJsonDepthMax levels.
class ValueBuilder {
 public:
    ValueBuilder(RepeatedKeys keys, std::size_t values_max)
        : values_max_(values_max), keys_(keys) {}

    bool null() { return put(nullptr) != nullptr; }
    bool boolean(bool value) { return put(value) != nullptr; }
    bool number_integer(json::number_integer_t value) { return put(value) != nullptr; }
    bool number_unsigned(json::number_unsigned_t value) { return put(value) != nullptr; }
    bool number_float(json::number_float_t value, const std::string& /*text*/) {
        return put(value) != nullptr;
    }
    bool string(std::string& value) { return put(std::move(value)) != nullptr; }
    bool binary(json::binary_t& /*value*/) { return false; }  // not a thing in JSON text

    bool start_object(std::size_t /*size*/) { return open(json::value_t::object); }
    bool start_array(std::size_t /*size*/) { return open(json::value_t::array); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }
    // A value of null is put here at once; the one that follows replaces it and is counted.
    bool key(std::string& name) {
        if (keys_ == RepeatedKeys::kRefused && open_.back()->contains(name)) {
            repeated_ = true;
            return false;
        }
        member_ = &(*open_.back())[std::move(name)];
        return true;
    }

    // The exception's own text is not used: it quotes the peer's bytes, of any length and encoding.
    bool parse_error(
        std::size_t position,
        const std::string& /*token*/,
        const nlohmann::detail::exception& /*e*/) {
        error_position_ = position;
        return false;
    }

    json take() { return std::move(root_); }
    bool too_deep() const { return too_deep_; }
    bool too_many() const { return too_many_; }
    bool repeated() const { return repeated_; }
    std::size_t error_position() const { return error_position_; }

 private:
    /// Null if there are too many values.
    template <typename Value>
    json* put(Value&& value) {
        if (values_ >= values_max_) {
            too_many_ = true;
            return nullptr;
        }
        ++values_;
        if (open_.empty()) {
            root_ = json(std::forward<Value>(value));
            return &root_;
        }
        if (open_.back()->is_array()) {
            return &open_.back()->emplace_back(std::forward<Value>(value));
        }
        *member_ = json(std::forward<Value>(value));
        return member_;
    }

    bool open(json::value_t type) {
        if (open_.size() >= static_cast<std::size_t>(limits::kJsonDepthMax)) {
            too_deep_ = true;
            return false;
        }
        json* const container = put(type);
        if (container == nullptr) {
            return false;
        }
        open_.push_back(container);
        return true;
    }

    bool close() {
        open_.pop_back();
        return true;
    }

    json root_;
    std::vector<json*> open_;  // a container never moves while one of its descendants is open
    json* member_ = nullptr;
    std::size_t values_ = 0;
    std::size_t error_position_ = 0;
    bool too_deep_ = false;
    bool too_many_ = false;
    bool repeated_ = false;
    std::size_t values_max_;
    RepeatedKeys keys_;
};

}  // namespace

Result<json> parse_json(
    std::string_view text, std::string_view what, RepeatedKeys keys, std::size_t values_max) {
    // nlohmann's lexer takes a NUL byte for the end of the text and would not look at the rest.
    const auto nul = text.starts_with(kByteOrderMark) ? 0 : text.find('\0');
    if (nul != std::string_view::npos) {
        return Error(
            ErrorCode::kProtocol,
            std::string(what) + ": not valid JSON at byte " + std::to_string(nul + 1));
    }
    ValueBuilder builder(keys, values_max);
    if (!json::sax_parse(text, &builder)) {
        if (builder.repeated()) {
            return Error(
                ErrorCode::kProtocol, std::string(what) + ": an object has the same key twice");
        }
        if (builder.too_deep()) {
            return Error(
                ErrorCode::kProtocol,
                std::string(what) + ": nested deeper than " +
                    std::to_string(limits::kJsonDepthMax) + " levels");
        }
        if (builder.too_many()) {
            return Error(
                ErrorCode::kLimitExceeded,
                std::string(what) + ": more than " + std::to_string(values_max) + " values");
        }
        return Error(
            ErrorCode::kProtocol,
            std::string(what) + ": not valid JSON at byte " +
                std::to_string(builder.error_position()));
    }
    return builder.take();
}

Result<json> parse_json_object(std::string_view text, std::string_view what) {
    BOOST_OUTCOME_TRY(auto value, parse_json(text, what));
    if (!value.is_object()) {
        return Error(ErrorCode::kProtocol, std::string(what) + ": not a JSON object");
    }
    return value;
}

bool is_json(std::string_view text) {
    return !text.starts_with(kByteOrderMark) && text.find('\0') == std::string_view::npos &&
           json::accept(text);
}

std::string dump_json(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace cellkeep::protocol
