// SPDX-License-Identifier: Apache-2.0
//
// ClientHellos for tests, whole or with something wrong. Values only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cellkeep::egress {

struct Extension {
    std::uint16_t type = 0;
    std::string bytes;
};

/// With its length in `size` bytes before it.
std::string with_length(const std::string& bytes, std::size_t size);
Extension server_name(const std::string& name);
/// The handshake message, without records.
std::string make_hello(const std::vector<Extension>& extensions);
/// In records of at most `piece` bytes.
std::string in_records(const std::string& handshake, std::size_t piece = 1U << 14U);

}  // namespace cellkeep::egress
