// SPDX-License-Identifier: Apache-2.0
#include "protocol/json_text.hpp"

#include "protocol/json.hpp"

#include <catch2/catch.hpp>

#include <string>

using cellkeep::protocol::append_json_string;
using cellkeep::protocol::dump_json;

namespace {

std::string as_json(std::string_view text) {
    std::string out = "before";
    append_json_string(out, text);
    REQUIRE(out.substr(0, 6) == "before");
    return out.substr(6);
}

}  // namespace

TEST_CASE("a JSON string is what the serializer makes of it", "[protocol][json]") {
    for (int byte = 0; byte < 256; ++byte) {
        const std::string one(1, static_cast<char>(byte));
        CAPTURE(byte);
        CHECK(as_json(one) == dump_json(one));
        CHECK(as_json("left" + one + "right") == dump_json("left" + one + "right"));
        CHECK(as_json(one + one) == dump_json(one + one));
    }
    CHECK(as_json("") == R"("")");
    CHECK(as_json("a\"b\\c\n\t\x01") == R"("a\"b\\c\n\t\u0001")");
}

TEST_CASE("text that is not ASCII is the serializer's, invalid or not", "[protocol][json]") {
    const std::string text = GENERATE(
        std::string("é😀\n"),
        std::string("line\n\xc3"),
        std::string("\xed\xa0\x80"),
        std::string("plain\n\xff plain"));
    CHECK(as_json(text) == dump_json(text));
}
