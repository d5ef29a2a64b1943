// SPDX-License-Identifier: Apache-2.0
//
// Takes secrets out of text before it is logged or stored: keys and tokens with well-known prefixes
// and shapes, private keys in PEM, the values of Authorization headers, passwords in URLs, and
// random-looking values that are assigned to names such as API_KEY. Time is linear in the text,
// memory is that of the result. Pure; any thread.
//
// A second line of defence, not a promise: a secret that does not look like one stays in the text.
// Code that handles a secret must still not log it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace cellkeep::session {

struct Redaction {
    std::string text;
    std::size_t count = 0;  // how many were taken out
};

/// Each secret becomes "[redacted:<what it looked like>]"; everything else stays byte by byte. What
/// it returns is returned unchanged when it is given again.
Redaction find_secrets(std::string_view text);
std::string redact(std::string_view text);

/// The same for every string in a document, the names of members too; and for a member whose name
/// says that its value is a secret ("api_key", "password").
nlohmann::json redact_json(nlohmann::json document);

}  // namespace cellkeep::session
