// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/contents/file_content.hpp"

#include "kernel-manager/jupyter/rest/contents/contents_turns.hpp"
#include "protocol/base64.hpp"
#include "protocol/json.hpp"
#include "protocol/json_scanner.hpp"
#include "protocol/json_text.hpp"
#include "protocol/plain_characters.hpp"
#include "protocol/sha256.hpp"
#include "protocol/utf8.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

namespace cellkeep::jupyter {

namespace {

boost::asio::awaitable<bool> is_utf8(const std::string& bytes) {
    std::size_t at = 0;
    while (at < bytes.size()) {
        const std::size_t turn_ends = std::min(bytes.size(), at + kContentsSliceBytes);
        while (at < turn_ends) {
            at = protocol::skip_plain_characters(bytes, at, turn_ends);
            if (at == turn_ends) {
                break;
            }
            const bool ascii = static_cast<unsigned char>(bytes[at]) < 0x80;
            const std::size_t length = ascii ? 1 : protocol::utf8_length(bytes, at);
            if (length == 0) {
                co_return false;
            }
            at += length;
        }
        if (at < bytes.size()) {
            co_await next_turn();
        }
    }
    co_return true;
}

boost::asio::awaitable<bool> is_json_object(const std::string& bytes) {
    protocol::JsonScanner scanner;
    while (scanner.advance(bytes, kContentsSliceBytes) == protocol::JsonScanner::State::kMore) {
        co_await next_turn();
    }
    co_return scanner.state() ==
        protocol::JsonScanner::State::kValid&& protocol::starts_json_object(bytes);
}

/// The next slice of the bytes, in front of which `at` is; text ends with a whole character.
std::string_view next_slice(const FileContent& content, std::size_t at) {
    std::string_view slice = std::string_view(content.bytes).substr(at, kContentsSliceBytes);
    if (content.format == ContentFormat::kText && at + slice.size() < content.bytes.size()) {
        std::size_t end = at + slice.size();
        while ((static_cast<unsigned char>(content.bytes[end]) & 0xC0U) == 0x80U) {
            --end;  // a byte that continues a character (Unicode 15, table 3-6)
        }
        slice = slice.substr(0, end - at);
    }
    return slice;
}

/// What a slice is within the answer, without the quotes around a string.
std::string encode(ContentFormat format, std::string_view slice) {
    switch (format) {
        case ContentFormat::kBase64:
            return protocol::encode_base64(slice);
        case ContentFormat::kJson:
            return std::string(slice);
        case ContentFormat::kText:
            break;
    }
    std::string quoted;
    protocol::append_json_string(quoted, slice);
    return quoted.substr(1, quoted.size() - 2);
}

/// The answer's text around the encoded bytes.
struct Frame {
    std::string before;
    std::string after;
};

Frame frame_of(const nlohmann::json& model, ContentFormat format) {
    const char* quote = format == ContentFormat::kJson ? "" : "\"";
    nlohmann::json shown = model;
    shown.erase("content");
    Frame frame;
    frame.before = protocol::dump_json(shown);
    frame.before.pop_back();  // the brace
    frame.before += std::string(",\"content\":") + quote;
    frame.after = std::string(quote) + "}";
    return frame;
}

boost::asio::awaitable<Status> stream_content(
    http::BodyWriter& writer,
    std::shared_ptr<const Frame> frame,
    std::shared_ptr<const FileContent> content) {
    Status written = co_await writer.write(frame->before);
    BOOST_OUTCOME_CO_TRY(std::move(written));
    for (std::size_t at = 0; at < content->bytes.size();) {
        const std::string_view slice = next_slice(*content, at);
        const std::string encoded = encode(content->format, slice);
        Status sent = co_await writer.write(encoded);
        BOOST_OUTCOME_CO_TRY(std::move(sent));
        at += slice.size();
    }
    Status ended = co_await writer.write(frame->after);
    co_return ended;
}

}  // namespace

const char* to_string(ContentFormat format) {
    switch (format) {
        case ContentFormat::kBase64:
            return "base64";
        case ContentFormat::kJson:
            return "json";
        case ContentFormat::kText:
            break;
    }
    return "text";
}

boost::asio::awaitable<Result<std::string>> read_in_slices(int fd, std::uint64_t bytes) {
    std::string text;
    text.reserve(bytes);
    while (text.size() < bytes) {
        const std::size_t before = text.size();
        text.resize(before + std::min<std::uint64_t>(kContentsSliceBytes, bytes - before));
        const ssize_t got =
            ::pread(fd, text.data() + before, text.size() - before, static_cast<off_t>(before));
        if (got < 0 && errno != EINTR) {
            co_return Error::from_errno(errno, "read(a file of the workspace)");
        }
        text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (got == 0) {
            break;  // the guest has cut it
        }
        if (text.size() < bytes) {
            co_await next_turn();
        }
    }
    co_return text;
}

boost::asio::awaitable<std::string> hash_in_slices(const std::string& bytes) {
    protocol::Sha256 digest;
    for (std::size_t at = 0; at < bytes.size(); at += kContentsSliceBytes) {
        digest.update(std::string_view(bytes).substr(at, kContentsSliceBytes));
        co_await next_turn();
    }
    co_return digest.finish();
}

boost::asio::awaitable<Result<ContentFormat>> check_format(
    const std::string& bytes, std::optional<ContentFormat> wanted) {
    if (wanted == ContentFormat::kBase64) {
        co_return *wanted;
    }
    if (wanted == ContentFormat::kJson) {
        const bool json = co_await is_json_object(bytes);
        if (!json) {
            co_return Error(ErrorCode::kInvalidArgument, "it is not a JSON object");
        }
        co_return *wanted;
    }
    const bool text = co_await is_utf8(bytes);
    if (!text && wanted) {
        co_return Error(ErrorCode::kInvalidArgument, "it is not UTF-8 encoded");
    }
    co_return text ? ContentFormat::kText : ContentFormat::kBase64;
}

http::Response make_content_answer(
    const nlohmann::json& model, const std::shared_ptr<const FileContent>& content) {
    http::Response response;
    response.headers.add("Content-Type", "application/json");
    auto frame = std::make_shared<const Frame>(frame_of(model, content->format));
    if (content->bytes.size() <= kContentsSliceBytes) {
        response.body = frame->before + encode(content->format, content->bytes) + frame->after;
        return response;
    }
    response.body = http::StreamBody{[frame, content](http::BodyWriter& writer) {
        return stream_content(writer, frame, content);
    }};
    return response;
}

}  // namespace cellkeep::jupyter
