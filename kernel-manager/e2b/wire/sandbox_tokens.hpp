// SPDX-License-Identifier: Apache-2.0
//
// The tokens of a sandbox: one for its commands and files, one for everything else in it, and
// signatures that stand for the first in an address. Each is a MAC of the sandbox's id under a key
// of this process, so there is nothing to keep but the key, and none fits another sandbox.
// io_context thread only.
#pragma once

#include "protocol/support/result.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::e2b {

class SandboxTokens {
 public:
    /// With a fresh key. Fails as getrandom(2) does.
    static Result<SandboxTokens> create();

    static constexpr std::size_t kKeyBytes = 32;
    /// For another program in the server's process.
    std::string key() const { return {key_.begin(), key_.end()}; }
    /// That of the program before, so that its tokens stay good. kProtocol for another length.
    Status use_key(std::string_view key);

    enum class Use { kEnvd, kTraffic };
    /// 64 hexadecimal digits.
    std::string token(Use use, std::string_view session_id) const;
    /// In constant time.
    bool fits(Use use, std::string_view session_id, std::string_view token) const;

    /// What a signed address says.
    struct SignedUse {
        std::string path;
        std::string operation;  // "read", "write"
        std::string user;
        std::string signature;
        std::optional<std::string> expiration;  // seconds since 1970
    };
    enum class Verdict { kFits, kWrong, kExpired };
    /// As E2B's clients sign (e2b/sandbox/signature.py): "v1_" and base64 without padding of
    /// SHA-256 of "path:operation:user:token[:expiration]". A user whose name is not made of
    /// letters, digits and "_-." is kWrong: only so does the text say one thing.
    Verdict check(
        std::string_view session_id,
        const SignedUse& use,
        std::chrono::system_clock::time_point now) const;

 private:
    using Key = std::array<unsigned char, kKeyBytes>;
    explicit SandboxTokens(const Key& key) : key_(key) {}

    Key key_;
};

}  // namespace cellkeep::e2b
