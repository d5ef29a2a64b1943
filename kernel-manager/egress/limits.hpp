// SPDX-License-Identifier: Apache-2.0
//
// The bounds of one session's proxy: those of protocol/limits.hpp; tests set smaller ones. Values.
#pragma once

#include "protocol/limits.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace cellkeep::egress {

/// Refusals of one session in any 60 seconds that get a line of the log; more are counted only.
inline constexpr std::size_t kRefusalsLoggedPerMinuteMax = 60;
/// Names of one session being looked up, those included that it no longer waits for.
inline constexpr std::size_t kLookupsPerSessionMax = 8;
/// For the client to close its side when everything has been said.
inline constexpr std::chrono::seconds kGoodbyeTimeout{5};

/// Of a tunnel, and of each way through it: what has been read and is not yet written.
inline constexpr std::size_t kRelayBytesMax = 32ULL << 10U;

struct ProxyLimits {
    std::size_t connections_max = limits::kEgressConnectionsMax;
    std::size_t head_bytes_max = limits::kEgressHeadBytesMax;
    std::size_t headers_max = limits::kEgressHeadersMax;
    std::size_t client_hello_bytes_max = limits::kEgressClientHelloBytesMax;
    std::size_t requests_per_minute_max = limits::kEgressRequestsPerMinuteMax;
    std::uint64_t bytes_up_max = limits::kEgressBytesUpMax;
    std::uint64_t bytes_down_max = limits::kEgressBytesDownMax;
    std::size_t addresses_max = limits::kEgressAddressesMax;
    std::size_t refusals_logged_per_minute_max = kRefusalsLoggedPerMinuteMax;
    std::size_t lookups_max = kLookupsPerSessionMax;
    std::chrono::milliseconds goodbye_timeout = kGoodbyeTimeout;
    std::chrono::milliseconds head_timeout = limits::kEgressHeadTimeout;
    std::chrono::milliseconds resolve_timeout = limits::kEgressResolveTimeout;
    std::chrono::milliseconds connect_timeout = limits::kEgressConnectTimeout;
    std::chrono::milliseconds idle_timeout = limits::kEgressIdleTimeout;
};

}  // namespace cellkeep::egress
