// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/connection/event_lines.hpp"
#include "kernel-manager/tools/connection/line_splitter.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::tools {
namespace {

using Texts = std::vector<std::string>;

/// The same bytes cut into pieces of each length.
template <typename Reader, typename Make>
void check_pieces(std::string_view bytes, const Texts& expected, const Make& make) {
    for (std::size_t size = 1; size <= bytes.size(); ++size) {
        Reader reader = make();
        Texts got;
        for (std::size_t at = 0; at < bytes.size(); at += size) {
            for (std::string& one : reader.feed(bytes.substr(at, size))) {
                got.push_back(std::move(one));
            }
        }
        CAPTURE(size);
        CHECK(got == expected);
    }
}

TEST_CASE("lines come whole however they are cut", "[tools]") {
    check_pieces<LineSplitter>(
        "one\ntwo\r\n\n\r\nlast\nrest", {"one", "two", "last"}, [] { return LineSplitter(100); });
}

TEST_CASE("a line that is too long is cut and told", "[tools]") {
    LineSplitter splitter(4);
    CHECK(splitter.feed("1234\n") == Texts{"1234"});
    CHECK_FALSE(splitter.overflowed());
    CHECK(splitter.feed("12345").empty());
    CHECK(splitter.overflowed());
    CHECK(splitter.feed(std::string(100'000, 'x')).empty());
    CHECK(splitter.feed("\nab\n") == Texts{"1234", "ab"});
}

TEST_CASE("events come whole however they are cut", "[tools]") {
    check_pieces<EventLines>(
        "event: message\ndata: {\"a\":\ndata:1}\n\n: comment\n\nid: 3\r\ndata\r\ndata: x\r\n\r\n"
        "data:\n\ndata:  two\r\rdata: never whole",
        {"{\"a\":\n1}", "x", "", " two"},
        [] { return EventLines(); });
}

}  // namespace
}  // namespace cellkeep::tools
