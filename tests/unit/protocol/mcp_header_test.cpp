// SPDX-License-Identifier: Apache-2.0
#include "protocol/mcp/header_value.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::protocol {
namespace {

TEST_CASE("what no header may hold is encoded, and comes back", "[mcp_header]") {
    for (const char* plain : {"", "run_code", "a b", "=?base64?", "cellkeep://a/b%20c"}) {
        CHECK(encode_mcp_header(plain) == plain);
    }
    for (const char* other :
         {" a", "a ", "\u00e4", "a\nb", "a\r\nX: y", "\t", "\x7F", "=?base64?YQ==?="}) {
        CAPTURE(other);
        CHECK(encode_mcp_header(other).starts_with("=?base64?"));
        CHECK(decode_mcp_header(encode_mcp_header(other)) == other);
    }
}

TEST_CASE("what is marked as base64 and is none has no value", "[mcp_header]") {
    CHECK(decode_mcp_header("=?base64?cnVu?=") == "run");
    for (const char* wrong : {"=?base64?cnV?=", "=?base64?!!?=", "=?base64?cnVu\n?="}) {
        CAPTURE(wrong);
        CHECK_FALSE(decode_mcp_header(wrong));
    }
    // Without both marks it is what it says.
    for (const char* plain : {"=?base64?=", "=?BASE64?cnVu?=", "cnVu?="}) {
        CHECK(decode_mcp_header(plain) == plain);
    }
}

}  // namespace
}  // namespace cellkeep::protocol
