// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/connection/server_connection.hpp"

#include "kernel-manager/tools/limits.hpp"
#include "protocol/json.hpp"
#include "protocol/support/run_elsewhere.hpp"

#include <optional>
#include <utility>

namespace cellkeep::tools {

namespace {

Result<RpcResponse> read_masked(const egress::SecretMask& mask, const std::string& text) {
    BOOST_OUTCOME_TRY(
        auto message,
        protocol::parse_json(
            mask.mask(text),
            "message",
            protocol::RepeatedKeys::kLastCounts,
            kServerMessageValuesMax));
    if (!message.is_object()) {
        return Error(ErrorCode::kProtocol, "a message of the tool server is no object");
    }
    return RpcResponse{std::move(message), text.size()};
}

}  // namespace

RpcAnswer make_answer(Result<RpcResponse> result) {
    return std::make_shared<const Result<RpcResponse>>(std::move(result));
}

boost::asio::awaitable<Result<RpcResponse>> read_rpc(ConnectionParts& parts, std::string text) {
    if (text.size() <= kReadAtOnceBytesMax) {
        co_return read_masked(*parts.mask, text);
    }
    const auto whole = std::make_shared<const std::string>(std::move(text));
    std::function<std::optional<RpcAnswer>()> slice = [whole, mask = parts.mask] {
        return std::optional(make_answer(read_masked(*mask, *whole)));
    };
    const RpcAnswer read =
        co_await run_elsewhere<RpcAnswer>(parts.io, *parts.work_thread, std::move(slice));
    co_return *read;
}

std::optional<std::int64_t> response_id(const nlohmann::json& message) {
    const auto id = message.find("id");
    const bool answers = message.contains("result") || message.contains("error");
    if (!answers || id == message.end() || !id->is_number_integer()) {
        return std::nullopt;
    }
    return id->get<std::int64_t>();
}

}  // namespace cellkeep::tools
