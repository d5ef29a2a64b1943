// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 in pieces. Wraps OpenSSL's EVP; one thread owns a digest.
#pragma once

#include "protocol/support/result.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace cellkeep::image {

class Sha256 {
 public:
    Sha256();
    Sha256(Sha256&& other) noexcept;
    Sha256& operator=(Sha256&& other) noexcept;
    Sha256(const Sha256&) = delete;
    Sha256& operator=(const Sha256&) = delete;
    ~Sha256();

    void update(std::string_view bytes);
    /// A piece and an end that no piece contains, so that neighbours cannot run together.
    void update_field(std::string_view bytes);
    /// Lower-case hexadecimal; the object is used up.
    std::string finish();

 private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Of a whole file, read from its descriptor's beginning.
Result<std::string> sha256_of_file(int fd);

}  // namespace cellkeep::image
