// SPDX-License-Identifier: Apache-2.0
#include "protocol/text_pieces.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <string>

using cellkeep::protocol::RawJson;
using cellkeep::protocol::TextPieces;
using cellkeep::protocol::TextSplicer;

namespace {

std::string quoted(std::size_t bytes) {
    return '"' + std::string(bytes - 2, 'x') + '"';
}

}  // namespace

TEST_CASE("a large value is referred to, a small one copied", "[protocol][text_pieces]") {
    const std::size_t most = TextSplicer::kReferBytesMin;
    const RawJson large(quoted(most));
    const RawJson small(quoted(most - 1));
    TextSplicer splicer;
    splicer.add("{\"a\":").add(large).add(",\"b\":").add(small).add("}");
    const TextPieces text = splicer.finish();
    CHECK(text.join() == "{\"a\":" + quoted(most) + ",\"b\":" + quoted(most - 1) + "}");
    CHECK(text.size() == text.join().size());
    REQUIRE(text.views().size() == 3);
    CHECK(text.views()[1].data() == large.text().data());
    CHECK(splicer.finish().size() == 0);
}

TEST_CASE("what a piece keeps alive is counted, once for each message", "[protocol][text_pieces]") {
    const auto owner = std::make_shared<const std::string>(quoted(100'000));
    const std::string_view all = *owner;
    const std::size_t bytes = TextSplicer::kReferBytesMin;
    TextSplicer splicer;
    splicer.add(RawJson(owner, all.substr(0, bytes), 100'000))
        .add(",")
        .add(RawJson(owner, all.substr(bytes, bytes), 100'000));
    const TextPieces text = splicer.finish();
    CHECK(text.size() == 2 * bytes + 1);
    CHECK(text.held_bytes() == 100'000 + 1);
}

TEST_CASE("pieces live as long as the text does", "[protocol][text_pieces]") {
    TextPieces text;
    {
        TextSplicer splicer;
        splicer.add(RawJson(quoted(50'000)));
        text = splicer.finish();
    }
    TextSplicer outer;
    outer.add("[").add(text).add(",").add(TextPieces(std::string("1"))).add("]");
    text = TextPieces();
    CHECK(outer.finish().join() == "[" + quoted(50'000) + ",1]");
}

TEST_CASE("null stands for itself, and nothing is no piece", "[protocol][text_pieces]") {
    TextSplicer splicer;
    CHECK(splicer.add(RawJson()).finish().join() == "null");
    CHECK(TextPieces("").views().empty());
    CHECK(TextPieces().join().empty());
    CHECK(RawJson().is_null());
    CHECK_FALSE(RawJson("{}").is_null());
    CHECK(RawJson("{}").is_object());
    CHECK_FALSE(RawJson("[]").is_object());
}
