// SPDX-License-Identifier: Apache-2.0
//
// The server's request to start a worker, as pid 1 reads it. Owns nothing and copies nothing: a
// decoded request is pointers into the bytes it came in. Rules of child_setup.hpp apply.
#pragma once

#include "sandbox/shared/messages.hpp"

#include <array>
#include <cstddef>

namespace cellkeep::sandbox {

/// A decoded start request: pointers into the request buffer, each list ended by a null pointer.
struct Start {
    bool warm = false;
    bool own_input = false;     // as the header says
    bool own_terminal = false;  // the same
    char* directory = nullptr;
    std::array<char*, kStartStringsMax + 2> arguments{};
    std::array<char*, kStartStringsMax + 2> environment{};
};

/// request: size bytes, at least a RequestHeader's, which must outlive start. start must be empty.
/// False if the strings are not exactly as many and as long as the header says.
bool decode_start(char* request, std::size_t size, Start& start);

}  // namespace cellkeep::sandbox
