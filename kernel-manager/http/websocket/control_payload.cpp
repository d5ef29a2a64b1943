// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/websocket/control_payload.hpp"

#include <utility>

namespace cellkeep::http {

namespace {

/// Of the payload of a ping that proves receipt.
constexpr std::size_t kProofBytes = 8;

}  // namespace

std::string cut_reason(std::string reason) {
    if (reason.size() > kReasonBytesMax) {
        std::size_t end = kReasonBytesMax;
        while (end > 0 && (static_cast<unsigned char>(reason[end]) & 0xC0U) == 0x80U) {
            --end;
        }
        reason.resize(end);
    }
    return reason;
}

std::string make_close(std::uint16_t code, std::string reason) {
    std::string payload{static_cast<char>(code >> 8U), static_cast<char>(code & 0xFFU)};
    payload += cut_reason(std::move(reason));
    return payload;
}

std::string make_proof(std::uint64_t number) {
    std::string ping{'\x89', static_cast<char>(kProofBytes)};
    for (std::size_t i = kProofBytes; i-- > 0;) {
        ping += static_cast<char>(number >> 8U * i & 0xFFU);
    }
    return ping;
}

std::optional<std::uint64_t> read_proof(std::string_view payload) {
    if (payload.size() != kProofBytes) {
        return std::nullopt;
    }
    std::uint64_t number = 0;
    for (const char byte : payload) {
        number = number << 8U | static_cast<unsigned char>(byte);
    }
    return number;
}

}  // namespace cellkeep::http
