// SPDX-License-Identifier: Apache-2.0
//
// What a client would take and prefers: Accept (RFC 9110, section 12.5.1) and Prefer (RFC 7240).
// Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace cellkeep::http {

/// Which of the offered media types ("text/html", lower case) the client would rather have: its
/// highest quality, the earlier offer among equals. Nothing if it takes none of them; the first
/// offer for an empty Accept. The most specific range that matches an offer decides its quality; a
/// range with parameters other than q matches no offer, and one that is malformed is left out.
std::optional<std::size_t> choose_media_type(
    std::string_view accept, const std::vector<std::string_view>& offers);

/// Whether a Prefer header holds this preference, with whatever value.
bool prefers(std::string_view prefer, std::string_view preference);

}  // namespace cellkeep::http
