// SPDX-License-Identifier: Apache-2.0
#include "protocol/json_scanner.hpp"

#include "protocol/plain_characters.hpp"
#include "protocol/utf8.hpp"

#include <algorithm>

namespace cellkeep::protocol {

namespace {

bool is_white_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

}  // namespace

JsonScanner::State JsonScanner::advance(std::string_view text, std::size_t bytes) {
    const std::size_t limit = at_ + std::min(bytes, text.size() - at_);
    while (state_ == State::kMore && at_ < limit) {
        step(text, limit);
    }
    if (state_ == State::kMore && at_ >= text.size()) {
        finish(text);
    }
    return state_;
}

void JsonScanner::finish(std::string_view text) {
    if (expect_ == Expect::kNumber && depth_ == 0) {
        if (!number_.fits_double()) {
            fail();
            return;
        }
        at_ = text.size();
        end_value();
    }
    state_ = expect_ == Expect::kEnd ? State::kValid : State::kInvalid;
}

void JsonScanner::step(std::string_view text, std::size_t limit) {
    if (expect_ == Expect::kString) {
        scan_string(text, limit);
        return;
    }
    if (expect_ == Expect::kNumber) {
        scan_number(text, limit);
        return;
    }
    const char c = text[at_];
    if (is_white_space(c)) {
        line_ends_ = line_ends_ || c == '\n' || c == '\r';
        ++at_;
        return;
    }
    switch (expect_) {
        case Expect::kValue:
            begin_value(text, c);
            return;
        case Expect::kFirstElement:
            if (c == ']') {
                close(/*is_object=*/false);
            } else {
                begin_value(text, c);
            }
            return;
        case Expect::kFirstKey:
            if (c == '}') {
                close(/*is_object=*/true);
                return;
            }
            [[fallthrough]];
        case Expect::kKey:
            if (c == '"') {
                begin_string(/*is_key=*/true);
            } else {
                fail();
            }
            return;
        case Expect::kColon:
            if (c == ':') {
                ++at_;
                expect_ = Expect::kValue;
            } else {
                fail();
            }
            return;
        case Expect::kAfterValue:
            if (c == ',') {
                ++at_;
                const std::size_t top = depth_ - 1;
                const bool in_object = ((objects_[top / 64] >> (top % 64)) & 1U) != 0;
                expect_ = in_object ? Expect::kKey : Expect::kValue;
            } else if (c == '}' || c == ']') {
                close(c == '}');
            } else {
                fail();
            }
            return;
        case Expect::kEnd:
        case Expect::kString:
        case Expect::kNumber:
            fail();
            return;
    }
}

void JsonScanner::begin_value(std::string_view text, char first) {
    if (depth_ <= JsonListener::kDepthMax) {
        begins_[depth_] = at_;
    }
    switch (first) {
        case '"':
            begin_string(/*is_key=*/false);
            return;
        case '{':
            open(/*is_object=*/true);
            return;
        case '[':
            open(/*is_object=*/false);
            return;
        case 't':
            take_literal(text, "true");
            return;
        case 'f':
            take_literal(text, "false");
            return;
        case 'n':
            take_literal(text, "null");
            return;
        default:
            break;
    }
    number_ = JsonNumber();
    if (!number_.take(first)) {
        fail();
        return;
    }
    ++at_;
    expect_ = Expect::kNumber;
}

void JsonScanner::take_literal(std::string_view text, std::string_view literal) {
    if (text.substr(at_, literal.size()) != literal) {
        fail();
        return;
    }
    at_ += literal.size();
    end_value();
}

void JsonScanner::open(bool is_object) {
    if (depth_ >= static_cast<std::size_t>(limits::kJsonDepthMax)) {
        fail();
        return;
    }
    const std::uint64_t bit = std::uint64_t{1} << (depth_ % 64);
    std::uint64_t& word = objects_[depth_ / 64];
    word = is_object ? word | bit : word & ~bit;
    ++depth_;
    ++at_;
    expect_ = is_object ? Expect::kFirstKey : Expect::kFirstElement;
}

void JsonScanner::close(bool is_object) {
    // There is an open container: only within one are these states reached.
    const std::size_t top = depth_ - 1;
    if ((((objects_[top / 64] >> (top % 64)) & 1U) != 0) != is_object) {
        fail();
        return;
    }
    --depth_;
    ++at_;
    end_value();
}

void JsonScanner::end_value() {
    expect_ = depth_ == 0 ? Expect::kEnd : Expect::kAfterValue;
    if (listener_ != nullptr && depth_ <= JsonListener::kDepthMax) {
        listener_->on_value(depth_, {begins_[depth_], at_});
    }
}

void JsonScanner::begin_string(bool is_key) {
    is_key_ = is_key;
    if (is_key) {
        key_begin_ = at_;
    }
    ++at_;
    expect_ = Expect::kString;
}

void JsonScanner::scan_string(std::string_view text, std::size_t limit) {
    std::size_t at = at_;
    while (at < limit) {
        at = skip_plain_characters(text, at, limit);
        if (at >= limit) {
            break;
        }
        const char c = text[at];
        if (c == '"') {
            at_ = at + 1;
            end_string();
            return;
        }
        if (c == '\\') {
            if (!take_escape(text, at)) {
                at_ = at;
                fail();
                return;
            }
            continue;
        }
        const std::size_t length = utf8_length(text, at);
        if (length == 0 || static_cast<unsigned char>(c) < 0x20) {
            at_ = at;
            fail();
            return;
        }
        at += length;
    }
    at_ = at;
}

void JsonScanner::end_string() {
    if (!is_key_) {
        end_value();
        return;
    }
    expect_ = Expect::kColon;
    if (listener_ != nullptr && depth_ <= JsonListener::kDepthMax) {
        listener_->on_key(depth_, {key_begin_, at_});
    }
}

bool JsonScanner::take_escape(std::string_view text, std::size_t& at) {
    const char c = at + 1 < text.size() ? text[at + 1] : '\0';
    if (c != 'u') {
        constexpr std::string_view kShort = "\"\\/bfnrt";
        if (c == '\0' || kShort.find(c) == std::string_view::npos) {
            return false;
        }
        at += 2;
        return true;
    }
    const EscapedUnit first = read_escaped_unit(text, at);
    if (!first.valid || is_low_surrogate(first.unit)) {
        return false;
    }
    at += kEscapedUnitBytes;
    if (!is_high_surrogate(first.unit)) {
        return true;
    }
    const EscapedUnit second = read_escaped_unit(text, at);
    if (!second.valid || !is_low_surrogate(second.unit)) {
        return false;
    }
    at += kEscapedUnitBytes;
    return true;
}

void JsonScanner::scan_number(std::string_view text, std::size_t limit) {
    while (at_ < limit) {
        if (!number_.take(text[at_])) {
            // What ends it is looked at as what follows a value.
            if (number_.fits_double()) {
                end_value();
            } else {
                fail();
            }
            return;
        }
        ++at_;
    }
}

bool is_valid_json(std::string_view text) {
    return JsonScanner().advance(text, text.size()) == JsonScanner::State::kValid;
}

bool is_valid_json_object(std::string_view text) {
    return starts_json_object(text) && is_valid_json(text);
}

bool starts_json_object(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    return first != std::string_view::npos && text[first] == '{';
}

}  // namespace cellkeep::protocol
