// SPDX-License-Identifier: Apache-2.0
//
// What a request remembers between its rounds (requestState): the client carries it, and cannot
// change it, give it to another principal, use it for another request, or keep it for long. It can
// read it. io_context thread only.
#pragma once

#include "protocol/signer.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::mcp {

class StateSeal {
 public:
    using Time = std::chrono::system_clock::time_point;

    /// subject: what it is for, a digest of the principal and the request. kSystem: there is no
    /// randomness for a key, which is made at the first use and lives as long as this.
    /// kLimitExceeded: it would be longer than kRequestStateBytesMax.
    Result<std::string> seal(const std::string& subject, const nlohmann::json& memory, Time now);
    /// kPermissionDenied: it was not made here, or for something else, or longer ago than
    /// kRequestStateLife.
    Result<nlohmann::json> open(std::string_view text, const std::string& subject, Time now) const;

    /// Its key, for another program in the server's process; "" before the first use.
    const std::string& key() const { return key_; }
    /// Takes the key of such a program, so that what that sealed can be opened here.
    Status use_key(std::string key);

 private:
    std::string key_;
    std::optional<protocol::Signer> signer_;
};

}  // namespace cellkeep::mcp
