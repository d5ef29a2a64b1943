// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/contents/contents_order.hpp"

#include "kernel-manager/jupyter/rest/contents/contents_turns.hpp"
#include "protocol/json_scanner.hpp"
#include "protocol/json_string.hpp"
#include "protocol/limits.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace cellkeep::jupyter {

namespace {

/// As they stand in a body.
constexpr std::array<std::string_view, 7> kOrderMembers = {
    "\"type\"", "\"format\"", "\"path\"", "\"copy_from\"", "\"ext\"", "\"chunk\"", "\"content\""};
enum class OrderMember : std::uint8_t {
    kType,
    kFormat,
    kPath,
    kCopyFrom,
    kExt,
    kChunk,
    kContent,
};

constexpr std::size_t place_of(OrderMember member) {
    return static_cast<std::size_t>(member);
}

/// Finds the members of the body's object that the API knows. Of a repeated key the last counts.
class OrderScan final : private protocol::JsonListener {
 public:
    explicit OrderScan(std::string_view text) : text_(text), scanner_(this) {}
    OrderScan(const OrderScan&) = delete;
    OrderScan& operator=(const OrderScan&) = delete;
    ~OrderScan() override = default;

    protocol::JsonScanner::State advance() { return scanner_.advance(text_, kContentsSliceBytes); }
    /// The JSON text; "" if the member is missing or null.
    std::string_view find(OrderMember member) const {
        return values_[place_of(member)] == "null" ? std::string_view() : values_[place_of(member)];
    }

 private:
    void on_key(std::size_t depth, protocol::JsonRange key) override {
        if (depth != 1) {
            return;
        }
        const std::string_view name = text_.substr(key.begin, key.end - key.begin);
        next_ = kOrderMembers.size();
        for (std::size_t i = 0; i < kOrderMembers.size(); ++i) {
            next_ = kOrderMembers[i] == name ? i : next_;
        }
    }
    void on_value(std::size_t depth, protocol::JsonRange value) override {
        if (depth == 1 && next_ < kOrderMembers.size()) {
            values_[next_] = text_.substr(value.begin, value.end - value.begin);
        }
    }

    std::string_view text_;
    protocol::JsonScanner scanner_;
    std::size_t next_ = kOrderMembers.size();
    std::array<std::string_view, kOrderMembers.size()> values_{};
};

Error bad_member(OrderMember member, const std::string& why) {
    std::string_view name = kOrderMembers[place_of(member)];
    name.remove_prefix(1);
    name.remove_suffix(1);
    return {ErrorCode::kInvalidArgument, std::string(name) + ": " + why};
}

Result<std::string> read_text(const OrderScan& scan, OrderMember member) {
    const std::string_view value = scan.find(member);
    if (value.empty()) {
        return std::string();
    }
    if (value.front() != '"') {
        return bad_member(member, "must be a string");
    }
    // An escaped character takes six bytes at most.
    if (value.size() > 6 * limits::kJupyterFieldBytesMax) {
        return bad_member(member, "is too long");
    }
    std::string text = protocol::read_json_string(value);
    if (text.size() > limits::kJupyterFieldBytesMax) {
        return bad_member(member, "is too long");
    }
    return text;
}

Result<std::optional<int>> read_chunk(const OrderScan& scan) {
    const std::string_view value = scan.find(OrderMember::kChunk);
    if (value.empty()) {
        return std::optional<int>();
    }
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool whole = error == std::errc() && end == value.data() + value.size();
    if (!whole || (number < 1 && number != -1)) {
        return bad_member(OrderMember::kChunk, "must be a number from 1, or -1 for the last");
    }
    return std::optional<int>(number);
}

Result<ContentsOrder> make_order(const OrderScan& scan) {
    ContentsOrder order;
    BOOST_OUTCOME_TRY(const std::string type, read_text(scan, OrderMember::kType));
    order.type = parse_content_type(type);
    BOOST_OUTCOME_TRY(order.format, read_text(scan, OrderMember::kFormat));
    BOOST_OUTCOME_TRY(order.path, read_text(scan, OrderMember::kPath));
    BOOST_OUTCOME_TRY(order.copy_from, read_text(scan, OrderMember::kCopyFrom));
    BOOST_OUTCOME_TRY(order.ext, read_text(scan, OrderMember::kExt));
    BOOST_OUTCOME_TRY(order.chunk, read_chunk(scan));
    order.content = scan.find(OrderMember::kContent);
    return order;
}

Result<bool> read_flag(const http::Target& target, const char* name, bool standard) {
    const std::string text = target.find_query(name).value_or(standard ? "1" : "0");
    if (text != "0" && text != "1") {
        return Error(ErrorCode::kInvalidArgument, std::string(name) + " must be 0 or 1.");
    }
    return text == "1";
}

std::string_view without_space(std::string_view body) {
    const std::size_t first = body.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) {
        return {};
    }
    return body.substr(first, body.find_last_not_of(" \t\r\n") - first + 1);
}

}  // namespace

std::optional<ContentType> parse_content_type(std::string_view text) {
    if (text.empty()) {
        return std::nullopt;
    }
    return text == "directory"  ? ContentType::kDirectory
           : text == "notebook" ? ContentType::kNotebook
                                : ContentType::kFile;
}

Result<ContentsQuery> read_contents_query(const http::Target& target) {
    ContentsQuery query;
    query.type = parse_content_type(target.find_query("type").value_or(""));
    const std::string format = target.find_query("format").value_or("");
    if (format == "text") {
        query.format = ContentFormat::kText;
    } else if (format == "base64") {
        query.format = ContentFormat::kBase64;
    } else if (!format.empty() && format != "json") {
        return Error(ErrorCode::kInvalidArgument, "format must be text, base64 or json.");
    }
    BOOST_OUTCOME_TRY(query.content, read_flag(target, "content", true));
    BOOST_OUTCOME_TRY(query.hash, read_flag(target, "hash", false));
    return query;
}

boost::asio::awaitable<Result<std::optional<ContentsOrder>>> read_contents_order(
    const std::string& body) {
    const std::string_view text = without_space(body);
    if (text.empty() || text == "null") {
        co_return std::optional<ContentsOrder>();
    }
    OrderScan scan(text);
    auto state = scan.advance();
    while (state == protocol::JsonScanner::State::kMore) {
        co_await next_turn();
        state = scan.advance();
    }
    if (state == protocol::JsonScanner::State::kInvalid) {
        co_return Error(ErrorCode::kInvalidArgument, "Invalid JSON in body of request");
    }
    if (!protocol::starts_json_object(text)) {
        co_return Error(ErrorCode::kInvalidArgument, "The body must be a JSON object");
    }
    auto order = make_order(scan);
    if (order.has_error()) {
        co_return std::move(order).error();
    }
    co_return std::optional<ContentsOrder>(std::move(order).value());
}

}  // namespace cellkeep::jupyter
