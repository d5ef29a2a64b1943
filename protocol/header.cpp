// SPDX-License-Identifier: Apache-2.0
#include "protocol/header.hpp"

#include "protocol/json.hpp"
#include "protocol/json_text.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/syscall.hpp"
#include "protocol/support/time.hpp"

#include <chrono>
#include <cstddef>
#include <utility>

namespace cellkeep::protocol {

namespace {

using nlohmann::json;

std::string* find_field(Header& header, std::string_view name) {
    if (name == "msg_id") {
        return &header.msg_id;
    }
    if (name == "session") {
        return &header.session;
    }
    if (name == "username") {
        return &header.username;
    }
    if (name == "date") {
        return &header.date;
    }
    if (name == "msg_type") {
        return &header.msg_type;
    }
    if (name == "version") {
        return &header.version;
    }
    return nullptr;
}

// Receives the parser's events and keeps the known members of the outermost object.
class FieldPicker {
 public:
    bool null() { return scalar(); }
    bool boolean(bool /*value*/) { return scalar(); }
    bool number_integer(json::number_integer_t /*value*/) { return scalar(); }
    bool number_unsigned(json::number_unsigned_t /*value*/) { return scalar(); }
    bool number_float(json::number_float_t /*value*/, const std::string& /*text*/) {
        return scalar();
    }
    bool binary(json::binary_t& /*value*/) { return false; }  // not a thing in JSON text

    bool string(std::string& value) {
        if (depth_ == 1 && (field_ != nullptr || is_subshell_)) {
            if (value.size() > limits::kHeaderFieldBytesMax) {
                reason_ = "a field is too long";
                return false;
            }
            if (is_subshell_) {
                header_.subshell_id = std::move(value);
            } else {
                *field_ = std::move(value);
            }
            return true;
        }
        return scalar();
    }

    bool key(std::string& name) {
        if (depth_ != 1) {
            return true;
        }
        // Of a repeated key the last one counts, so what an earlier one set goes first.
        field_ = find_field(header_, name);
        is_subshell_ = name == "subshell_id";
        if (field_ != nullptr) {
            field_->clear();
        }
        if (is_subshell_) {
            header_.subshell_id.reset();
        }
        return true;
    }

    bool start_object(std::size_t /*size*/) { return open(); }
    bool end_object() { return close(); }
    bool start_array(std::size_t /*size*/) { return depth_ > 0 ? open() : scalar(); }
    bool end_array() { return close(); }

    bool parse_error(
        std::size_t /*position*/,
        const std::string& /*token*/,
        const nlohmann::detail::exception& /*e*/) {
        reason_ = "not valid JSON";
        return false;
    }

    Header take() { return std::move(header_); }
    std::string_view reason() const { return reason_; }

 private:
    bool scalar() {
        if (depth_ == 0) {
            reason_ = "not a JSON object";
            return false;
        }
        return true;
    }

    bool open() {
        if (depth_ >= limits::kJsonDepthMax) {
            reason_ = "nested too deep";
            return false;
        }
        ++depth_;
        return true;
    }

    bool close() {
        --depth_;
        return true;
    }

    Header header_;
    int depth_ = 0;
    std::string* field_ = nullptr;
    bool is_subshell_ = false;
    std::string_view reason_;
};

// A byte that stands for itself inside a JSON string.
bool is_plain_character(char c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

// Reads the form that every known client and kernel writes, a flat object of plain strings and
// nulls, about ten times as fast as the general parser; each message has two headers to read. What
// it does not know (escapes, other types, errors) it leaves to the general parser, which alone
// refuses.
class PlainScanner {
 public:
    explicit PlainScanner(std::string_view text) : text_(text) {}

    /// False: not of this form; the header is then in an unspecified state.
    bool scan(Header& header) {
        skip_space();
        if (!take('{')) {
            return false;
        }
        skip_space();
        while (!take('}')) {
            if (!scan_member(header)) {
                return false;
            }
            skip_space();
            if (take(',')) {
                skip_space();
                if (at_ >= text_.size() || text_[at_] != '"') {
                    return false;
                }
            } else if (at_ >= text_.size() || text_[at_] != '}') {
                return false;
            }
        }
        skip_space();
        return at_ == text_.size();
    }

 private:
    void skip_space() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' ||
                                      text_[at_] == '\r' || text_[at_] == '\t')) {
            ++at_;
        }
    }

    bool take(char c) {
        if (at_ >= text_.size() || text_[at_] != c) {
            return false;
        }
        ++at_;
        return true;
    }

    std::optional<std::string_view> take_string() {
        if (!take('"')) {
            return std::nullopt;
        }
        const std::size_t begin = at_;
        while (at_ < text_.size() && is_plain_character(text_[at_])) {
            ++at_;
        }
        const std::string_view string = text_.substr(begin, at_ - begin);
        return take('"') ? std::optional(string) : std::nullopt;
    }

    bool scan_member(Header& header) {
        const auto name = take_string();
        skip_space();
        if (!name || !take(':')) {
            return false;
        }
        skip_space();
        std::optional<std::string_view> value;
        if (text_.substr(at_, 4) == "null") {
            at_ += 4;
        } else {
            value = take_string();
            if (!value || value->size() > limits::kHeaderFieldBytesMax) {
                return false;
            }
        }
        if (std::string* field = find_field(header, *name)) {
            field->assign(value.value_or(std::string_view()));
        } else if (*name == "subshell_id") {
            header.subshell_id = value ? std::optional<std::string>(*value) : std::nullopt;
        }
        return true;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

Result<Header> pick_fields(std::string_view text, std::string_view what) {
    if (text.size() > limits::kHeaderBytesMax) {
        return Error(
            ErrorCode::kProtocol,
            std::string(what) + ": longer than " + std::to_string(limits::kHeaderBytesMax) +
                " bytes");
    }
    Header plain;
    if (PlainScanner(text).scan(plain)) {
        return plain;
    }
    // nlohmann's lexer takes a NUL byte for the end of the text and would not look at the rest, and
    // it skips a byte order mark.
    if (text.find('\0') != std::string_view::npos || text.starts_with("\xEF\xBB\xBF")) {
        return Error(ErrorCode::kProtocol, std::string(what) + ": not valid JSON");
    }
    FieldPicker picker;
    if (!json::sax_parse(text, &picker)) {
        return Error(ErrorCode::kProtocol, std::string(what) + ": " + std::string(picker.reason()));
    }
    return picker.take();
}

}  // namespace

json to_json(const Header& header) {
    json value = {
        {"msg_id", header.msg_id},
        {"session", header.session},
        {"username", header.username},
        {"date", header.date},
        {"msg_type", header.msg_type},
        {"version", header.version}};
    if (header.subshell_id) {
        value["subshell_id"] = *header.subshell_id;
    }
    return value;
}

std::string to_json_text(const Header& header) {
    std::string text;
    text.reserve(256);
    text += R"({"msg_id":)";
    append_json_string(text, header.msg_id);
    for (const auto& [name, value] :
         {std::pair{R"(,"session":)", &header.session},
          std::pair{R"(,"username":)", &header.username},
          std::pair{R"(,"date":)", &header.date},
          std::pair{R"(,"msg_type":)", &header.msg_type},
          std::pair{R"(,"version":)", &header.version}}) {
        text += name;
        append_json_string(text, *value);
    }
    if (header.subshell_id) {
        text += R"(,"subshell_id":)";
        append_json_string(text, *header.subshell_id);
    }
    text += '}';
    return text;
}

Result<Header> parse_header(std::string_view json) {
    BOOST_OUTCOME_TRY(auto header, pick_fields(json, "header"));
    if (header.msg_id.empty()) {
        return Error(ErrorCode::kProtocol, "header: msg_id is missing or not a string");
    }
    if (header.msg_type.empty()) {
        return Error(ErrorCode::kProtocol, "header: msg_type is missing or not a string");
    }
    return header;
}

Result<Header> parse_parent_header(std::string_view json) {
    if (json == "{}") {
        return Header{};  // the usual case of a request
    }
    return pick_fields(json, "parent_header");
}

Header make_header(std::string_view msg_type, std::string_view session, std::string_view username) {
    auto random = random_hex(16);
    CELLKEEP_CHECK(random.has_value());  // getrandom(2) of 16 bytes cannot fail once it exists
    std::string id = std::move(random).value();
    // RFC 9562 section 5.4: version 4, variant 10.
    static constexpr std::string_view kVariants = "89ab";
    const auto variant = static_cast<unsigned char>(id[16]);
    id[12] = '4';
    id[16] = kVariants[variant & 3U];
    for (const std::size_t dash : {8U, 13U, 18U, 23U}) {
        id.insert(dash, 1, '-');
    }
    return Header{
        .msg_id = std::move(id),
        .session = std::string(session),
        .username = std::string(username),
        .date = to_iso8601(std::chrono::system_clock::now()),
        .msg_type = std::string(msg_type),
        .version = std::string(kProtocolVersion),
        .subshell_id = std::nullopt};
}

}  // namespace cellkeep::protocol
