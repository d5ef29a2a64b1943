// SPDX-License-Identifier: Apache-2.0
//
// The bounds of one session's proxy: those of protocol/limits.hpp; tests set smaller ones. Values.
#pragma once

#include "protocol/limits.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace cellkeep::egress {

struct ProxyLimits {
    std::size_t connections_max = limits::kEgressConnectionsMax;
    std::size_t head_bytes_max = limits::kEgressHeadBytesMax;
    std::size_t headers_max = limits::kEgressHeadersMax;
    std::size_t client_hello_bytes_max = limits::kEgressClientHelloBytesMax;
    std::size_t requests_per_minute_max = limits::kEgressRequestsPerMinuteMax;
    std::uint64_t bytes_up_max = limits::kEgressBytesUpMax;
    std::uint64_t bytes_down_max = limits::kEgressBytesDownMax;
    std::size_t addresses_max = limits::kEgressAddressesMax;
    std::chrono::milliseconds head_timeout = limits::kEgressHeadTimeout;
    std::chrono::milliseconds resolve_timeout = limits::kEgressResolveTimeout;
    std::chrono::milliseconds connect_timeout = limits::kEgressConnectTimeout;
    std::chrono::milliseconds idle_timeout = limits::kEgressIdleTimeout;
};

}  // namespace cellkeep::egress
