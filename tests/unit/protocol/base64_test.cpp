// SPDX-License-Identifier: Apache-2.0
#include "protocol/base64.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::protocol {
namespace {

TEST_CASE("base64 decodes the vectors of RFC 4648", "[protocol][base64]") {
    CHECK(decode_base64("") == "");
    CHECK(decode_base64("Zg==") == "f");
    CHECK(decode_base64("Zm8=") == "fo");
    CHECK(decode_base64("Zm9v") == "foo");
    CHECK(decode_base64("Zm9vYmFy") == "foobar");
    CHECK(decode_base64("AP/+") == std::string("\0\xff\xfe", 3));
}

TEST_CASE("what is not strict base64 is refused", "[protocol][base64]") {
    const std::string text = GENERATE(
        as<std::string>(),
        "Z",
        "Zg",
        "Zg=",
        "Zg===",
        "=",
        "====",
        "Zh==",
        "Zm9=",
        "Zm9v\n",
        " Zm9v",
        "Zm 9",
        "Zm9-",
        "Zm9_",
        "Z===",
        "Zg==Zg==",
        "Zm\x80v");
    CAPTURE(text);
    CHECK_FALSE(decode_base64(text).has_value());
}

}  // namespace
}  // namespace cellkeep::protocol
