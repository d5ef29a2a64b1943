// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/wire/connect_stream.hpp"

#include "protocol/json.hpp"

#include <cstdint>
#include <utility>

namespace cellkeep::e2b {

namespace {

constexpr std::size_t kHeadBytes = 5;
constexpr unsigned char kEndOfStream = 2;

std::string frame(unsigned char flags, const std::string& text) {
    const auto length = static_cast<std::uint32_t>(text.size());
    std::string framed;
    framed.reserve(kHeadBytes + text.size());
    framed += static_cast<char>(flags);
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
        framed += static_cast<char>((length >> shift) & 0xFFU);
    }
    return framed + text;
}

std::size_t announced(std::string_view head) {
    std::size_t length = 0;
    for (std::size_t i = 1; i < kHeadBytes; ++i) {
        length = length << 8U | static_cast<unsigned char>(head[i]);
    }
    return length;
}

}  // namespace

std::string frame_message(const nlohmann::json& message) {
    return frame(0, protocol::dump_json(message));
}

std::string frame_end(std::string_view code, std::string_view message) {
    nlohmann::json end = nlohmann::json::object();
    if (!code.empty()) {
        end["error"] = {{"code", code}, {"message", message}};
    }
    return frame(kEndOfStream, protocol::dump_json(end));
}

Status ConnectReader::check_head() const {
    const std::string_view text = rest();
    if (text.empty()) {
        return ok();
    }
    const auto flags = static_cast<unsigned char>(text.front());
    if (ended_) {
        return Error(ErrorCode::kProtocol, "there is a message after the end of the stream");
    }
    if (flags != 0 && flags != kEndOfStream) {
        return Error(
            ErrorCode::kProtocol,
            "a message has flags that are not known here; send it without compression");
    }
    if (text.size() >= kHeadBytes && announced(text) > message_bytes_max_) {
        return Error(
            ErrorCode::kLimitExceeded,
            "a message is longer than " + std::to_string(message_bytes_max_) + " bytes");
    }
    return ok();
}

Status ConnectReader::append(std::string_view bytes) {
    buffer_.erase(0, std::exchange(taken_, 0));
    buffer_ += bytes;
    return check_head();
}

std::size_t ConnectReader::awaited() const {
    const std::string_view text = rest();
    return text.size() < kHeadBytes ? text.size() : kHeadBytes + announced(text);
}

Result<std::optional<nlohmann::json>> ConnectReader::next() {
    BOOST_OUTCOME_TRY(check_head());
    const std::string_view whole = rest();
    if (whole.size() < kHeadBytes || whole.size() - kHeadBytes < announced(whole)) {
        return std::optional<nlohmann::json>();
    }
    const std::string_view text = whole.substr(kHeadBytes, announced(whole));
    ended_ = static_cast<unsigned char>(whole.front()) == kEndOfStream;
    taken_ += kHeadBytes + text.size();
    if (ended_) {
        return std::optional<nlohmann::json>();
    }
    auto message =
        protocol::parse_json(text, "message", protocol::RepeatedKeys::kRefused, kBodyValuesMax);
    if (message.has_error() || !message.value().is_object()) {
        return Error(
            ErrorCode::kInvalidArgument,
            message.has_error() ? message.error().message() : "a message must be a JSON object");
    }
    return std::optional(std::move(message).value());
}

Result<nlohmann::json> read_only_message(std::string_view body) {
    ConnectReader reader;
    BOOST_OUTCOME_TRY(reader.append(body));
    BOOST_OUTCOME_TRY(auto message, reader.next());
    if (!message) {
        return Error(ErrorCode::kProtocol, "the stream has no whole message");
    }
    BOOST_OUTCOME_TRY(const auto another, reader.next());
    if (another || !reader.is_clean()) {
        return Error(ErrorCode::kProtocol, "the stream has more than one message");
    }
    return std::move(*message);
}

}  // namespace cellkeep::e2b
