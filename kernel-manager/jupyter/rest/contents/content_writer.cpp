// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/contents/content_writer.hpp"

#include "kernel-manager/jupyter/rest/contents/contents_turns.hpp"
#include "protocol/base64.hpp"
#include "protocol/json_string.hpp"

#include <algorithm>
#include <cstddef>

namespace cellkeep::jupyter {

namespace {

constexpr std::size_t kBase64GroupBytes = 4;

Error not_base64() {
    return {ErrorCode::kInvalidArgument, "content: it is not base64, as its format says"};
}

/// Decodes base64 that comes in pieces. Line ends between the characters are left out, because some
/// clients write them (RFC 2045, section 6.8).
class Base64Reader {
 public:
    Result<std::string> read(std::string_view piece) {
        for (const char c : piece) {
            if (c != '\r' && c != '\n') {
                waiting_ += c;
            }
        }
        const std::size_t whole = waiting_.size() - waiting_.size() % kBase64GroupBytes;
        if (whole == 0) {
            return std::string();
        }
        const auto decoded =
            padded_ ? std::nullopt
                    : protocol::decode_base64(std::string_view(waiting_).substr(0, whole));
        if (!decoded) {
            return not_base64();
        }
        padded_ = waiting_[whole - 1] == '=';
        waiting_.erase(0, whole);
        return *decoded;
    }
    bool complete() const { return waiting_.empty(); }

 private:
    std::string waiting_;  // less than a group, between calls
    bool padded_ = false;  // nothing may follow
};

/// The next piece of the text inside a JSON string, as a JSON string.
std::string take_piece(std::string_view& inside) {
    const std::size_t cut = protocol::cut_json_string(inside, kContentsSliceBytes);
    std::string quoted;
    quoted.reserve(cut + 2);
    quoted += '"';
    quoted += inside.substr(0, cut);
    quoted += '"';
    inside.remove_prefix(cut);
    return quoted;
}

boost::asio::awaitable<Status> write_string(
    std::string_view content, bool base64, ContentSink sink) {
    std::string_view inside = protocol::inside_json_string(content);
    Base64Reader reader;
    while (!inside.empty()) {
        std::string bytes = protocol::read_json_string(take_piece(inside));
        if (base64) {
            BOOST_OUTCOME_CO_TRY(bytes, reader.read(bytes));
        }
        BOOST_OUTCOME_CO_TRY(sink(bytes));
        if (!inside.empty()) {
            co_await next_turn();
        }
    }
    if (!reader.complete()) {
        co_return not_base64();
    }
    co_return ok();
}

}  // namespace

Status check_content(const ContentsOrder& order, ContentType type) {
    if (order.content.empty()) {
        return Error(ErrorCode::kInvalidArgument, "No file content provided");
    }
    if (type == ContentType::kNotebook) {
        if (order.content.front() != '{') {
            return Error(
                ErrorCode::kInvalidArgument, "content: a notebook's must be a JSON object");
        }
        if (!order.format.empty() && order.format != "json") {
            return Error(ErrorCode::kInvalidArgument, "format: a notebook's is json");
        }
        return ok();
    }
    if (order.content.front() != '"') {
        return Error(ErrorCode::kInvalidArgument, "content: a file's must be a string");
    }
    if (order.format != "text" && order.format != "base64") {
        return Error(
            ErrorCode::kInvalidArgument,
            "Must specify format of file contents as 'text' or 'base64'");
    }
    return ok();
}

ContentFormat format_of(const ContentsOrder& order, ContentType type) {
    if (type == ContentType::kNotebook) {
        return ContentFormat::kJson;
    }
    return order.format == "base64" ? ContentFormat::kBase64 : ContentFormat::kText;
}

boost::asio::awaitable<Status> write_content(
    std::string_view content, ContentFormat format, ContentSink sink) {
    if (format != ContentFormat::kJson) {
        Status written =
            co_await write_string(content, format == ContentFormat::kBase64, std::move(sink));
        co_return written;
    }
    for (std::size_t at = 0; at < content.size(); at += kContentsSliceBytes) {
        BOOST_OUTCOME_CO_TRY(sink(content.substr(at, kContentsSliceBytes)));
        co_await next_turn();
    }
    BOOST_OUTCOME_CO_TRY(sink("\n"));
    co_return ok();
}

}  // namespace cellkeep::jupyter
