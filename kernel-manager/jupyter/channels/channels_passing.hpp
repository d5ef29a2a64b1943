// SPDX-License-Identifier: Apache-2.0
//
// The places of a session's WebSocket clients on their way from one program in the server's process
// to another. They are away then. Output waits by its number, because the session's journal passes;
// answers wait as they are, the newest of them within bounds.
#pragma once

#include "protocol/message.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cellkeep::jupyter {

/// Of the answers that wait for one client, and for those of one session together.
inline constexpr std::size_t kPassedPlaceBytesMax = 1U << 20U;
inline constexpr std::size_t kPassedPlacesBytesMax = 4U << 20U;
/// What a place takes besides, about.
inline constexpr std::size_t kPassedPlaceBesidesBytes = 1U << 10U;

struct PassedPlace {
    struct Answer {
        protocol::Message message;
        std::uint64_t after = 0;  // sent behind output of this sequence number
    };
    std::string key;
    std::uint64_t seen = 0;  // output behind this number is still to be sent
    std::vector<Answer> answers;
    std::uint64_t lost = 0;  // output messages that the client does not know to be missing
    std::string lost_parent = "{}";
};

/// The client that left first comes first. What does not fit goes: of each client the oldest
/// answers, and of the clients those that left first. `dropped` grows by what went.
nlohmann::json write_places(const std::vector<PassedPlace>& places, std::size_t& dropped);
/// Throws json::exception for another form. An answer that is no message is left out; `dropped`
/// grows.
std::vector<PassedPlace> read_places(const nlohmann::json& text, std::size_t& dropped);

}  // namespace cellkeep::jupyter
