// SPDX-License-Identifier: Apache-2.0
//
// The addresses of a session's own network that the server may connect to. No other address is ever
// named to pid 1.
#pragma once

#include <cstdint>

namespace cellkeep::sandbox {

/// 127.0.0.1 and ::1.
enum class Loopback : std::uint32_t { kV4, kV6 };

}  // namespace cellkeep::sandbox
