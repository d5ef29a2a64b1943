// SPDX-License-Identifier: Apache-2.0
#include "protocol/json_text.hpp"

#include "protocol/json.hpp"
#include "protocol/plain_characters.hpp"
#include "protocol/utf8.hpp"

#include <cstddef>

namespace cellkeep::protocol {

void append_json_string(std::string& out, std::string_view text) {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    const std::size_t begin = out.size();
    out.reserve(begin + text.size() + 2);
    out += '"';
    std::size_t done = 0;
    for (std::size_t at = skip_plain_characters(text, 0, text.size()); at < text.size();
         at = skip_plain_characters(text, at + 1, text.size())) {
        const auto c = static_cast<unsigned char>(text[at]);
        if (c >= 0x80) {
            if (const std::size_t length = utf8_length(text, at); length > 0) {
                at += length - 1;
                continue;
            }
            // How much of it is replaced is what nlohmann's serializer knows.
            out.resize(begin);
            out += dump_json(text);
            return;
        }
        out.append(text, done, at - done);
        done = at + 1;
        out += '\\';
        switch (c) {
            case '\b':
                out += 'b';
                break;
            case '\t':
                out += 't';
                break;
            case '\n':
                out += 'n';
                break;
            case '\f':
                out += 'f';
                break;
            case '\r':
                out += 'r';
                break;
            case '"':
            case '\\':
                out += static_cast<char>(c);
                break;
            default:
                out.append("u00").append(1, kDigits[c >> 4U]).append(1, kDigits[c & 15U]);
        }
    }
    out.append(text, done);
    out += '"';
}

}  // namespace cellkeep::protocol
