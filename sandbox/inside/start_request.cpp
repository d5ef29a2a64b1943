// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/start_request.hpp"

#include <cstdint>
#include <cstring>

namespace cellkeep::sandbox {

namespace {

/// The next string of the request text; null if none is left.
char* next_string(char*& at, const char* end) {
    if (at == end) {
        return nullptr;
    }
    char* start = at;
    auto* terminator =
        static_cast<char*>(std::memchr(start, '\0', static_cast<std::size_t>(end - start)));
    if (terminator == nullptr) {
        return nullptr;
    }
    at = terminator + 1;
    return start;
}

}  // namespace

bool decode_start(char* request, std::size_t size, Start& start) {
    RequestHeader header;
    std::memcpy(&header, request, sizeof(header));
    if (header.text_bytes != size - sizeof(RequestHeader) || header.argument_count == 0 ||
        header.argument_count > kStartStringsMax || header.environment_count > kStartStringsMax ||
        header.warm > 1 || header.own_input > 1 || header.own_terminal > 1) {
        return false;
    }
    start.warm = header.warm == 1;
    start.own_input = header.own_input == 1;
    start.own_terminal = header.own_terminal == 1;
    char* at = request + sizeof(RequestHeader);
    const char* end = at + header.text_bytes;
    start.directory = next_string(at, end);
    bool whole = start.directory != nullptr;
    for (std::uint32_t i = 0; i < header.argument_count; ++i) {
        start.arguments[i] = next_string(at, end);
        whole = whole && start.arguments[i] != nullptr;
    }
    for (std::uint32_t i = 0; i < header.environment_count; ++i) {
        start.environment[i] = next_string(at, end);
        whole = whole && start.environment[i] != nullptr;
    }
    return whole && at == end;
}

}  // namespace cellkeep::sandbox
