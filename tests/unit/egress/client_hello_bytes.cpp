// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/egress/client_hello_bytes.hpp"

namespace cellkeep::egress {

std::string with_length(const std::string& bytes, std::size_t size) {
    std::string head;
    for (std::size_t i = size; i-- > 0;) {
        head.push_back(static_cast<char>((bytes.size() >> (8 * i)) & 0xFFU));
    }
    return head + bytes;
}

Extension server_name(const std::string& name) {
    return {0, with_length(std::string(1, '\0') + with_length(name, 2), 2)};
}

std::string make_hello(const std::vector<Extension>& extensions) {
    std::string all;
    for (const Extension& one : extensions) {
        all.push_back(static_cast<char>(one.type >> 8U));
        all.push_back(static_cast<char>(one.type & 0xFFU));
        all += with_length(one.bytes, 2);
    }
    std::string body("\x03\x03", 2);
    body += std::string(32, 'r');
    body += with_length(std::string(32, 's'), 1);
    body += with_length(std::string("\x13\x01\x13\x02", 4), 2);
    body += with_length(std::string(1, '\0'), 1);
    body += with_length(all, 2);
    return std::string(1, '\x01') + with_length(body, 3);
}

std::string in_records(const std::string& handshake, std::size_t piece) {
    std::string records;
    for (std::size_t at = 0; at < handshake.size(); at += piece) {
        records += std::string("\x16\x03\x01", 3) + with_length(handshake.substr(at, piece), 2);
    }
    return records;
}

}  // namespace cellkeep::egress
