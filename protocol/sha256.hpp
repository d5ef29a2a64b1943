// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4) as lower-case hexadecimal text. It names code, files and requests whose
// bytes are not kept. Not for secrets: it has no key.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace cellkeep::protocol {

/// A digest of bytes that come piece by piece. Not thread-safe.
class Sha256 {
 public:
    Sha256();
    Sha256(Sha256&&) noexcept;
    Sha256& operator=(Sha256&&) noexcept;
    Sha256(const Sha256&) = delete;
    Sha256& operator=(const Sha256&) = delete;
    ~Sha256();

    void update(std::string_view bytes);
    /// The length and then the bytes: a sequence of fields has one digest however they are cut.
    void update_field(std::string_view bytes);
    /// 64 digits. Call it once, as the last function.
    std::string finish();

 private:
    struct State;
    std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view bytes);

}  // namespace cellkeep::protocol
