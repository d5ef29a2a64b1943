// SPDX-License-Identifier: Apache-2.0
#include "protocol/header.hpp"

#include "protocol/json.hpp"
#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <regex>
#include <set>
#include <string>

using Catch::Matchers::Contains;
using cellkeep::ErrorCode;
using cellkeep::protocol::dump_json;
using cellkeep::protocol::make_header;
using cellkeep::protocol::parse_header;
using cellkeep::protocol::parse_parent_header;

namespace limits = cellkeep::limits;

namespace {

void check_header_refused(const std::string& text, const std::string& reason = "header: ") {
    CAPTURE(text.substr(0, 200), reason);
    const auto header = parse_header(text);
    REQUIRE(header.has_error());
    CHECK(header.error().code() == ErrorCode::kProtocol);
    CHECK_THAT(header.error().message(), Contains(reason));
}

}  // namespace

TEST_CASE("a header's fields are picked out of its text", "[protocol][header]") {
    const auto parsed = parse_header(
        R"({"msg_id":"m1","session":"s1","username":"u","date":"2026-11-21T20:59:40.000123Z",)"
        R"("msg_type":"execute_request","version":"5.5","subshell_id":"sub",)"
        R"("more":{"msg_id":"inner","list":[{"msg_type":"inner"}]}})");
    REQUIRE(parsed.has_value());
    const auto& header = parsed.value();
    CHECK(header.msg_id == "m1");
    CHECK(header.session == "s1");
    CHECK(header.username == "u");
    CHECK(header.date == "2026-11-21T20:59:40.000123Z");
    CHECK(header.msg_type == "execute_request");
    CHECK(header.version == "5.5");
    CHECK(header.subshell_id == "sub");
}

TEST_CASE("only msg_id and msg_type are required", "[protocol][header]") {
    const auto parsed = parse_header(
        R"({"msg_type":"x","subshell_id":null,"username":null,"version":5.3,"session":[],"msg_id":"m"})");
    REQUIRE(parsed.has_value());
    CHECK(parsed.value().msg_id == "m");
    CHECK(parsed.value().username.empty());
    CHECK(parsed.value().version.empty());
    CHECK(parsed.value().session.empty());
    CHECK(!parsed.value().subshell_id.has_value());
}

TEST_CASE("a header reads the same however it is written", "[protocol][header]") {
    // The plain form has a scanner of its own; an escape, a number or a nested value does not.
    for (const char* text :
         {R"({"msg_id":"m","msg_type":"x","subshell_id":"s"})",
          " {\n\t\"msg_id\" : \"m\" ,\r\n \"msg_type\":\"x\", \"subshell_id\":\"s\" } ",
          R"({"msg_id":"\u006d","msg_type":"x","subshell_id":"s"})",
          R"({"\u006dsg_id":"m","msg_type":"x","subshell_id":"s"})",
          R"({"msg_id":"m","msg_type":"x","subshell_id":"s","more":1})",
          R"({"msg_id":"old","msg_type":null,"msg_id":"m","msg_type":"x","subshell_id":"s"})"}) {
        CAPTURE(text);
        const auto parsed = parse_header(text);
        REQUIRE(parsed.has_value());
        CHECK(parsed.value().msg_id == "m");
        CHECK(parsed.value().msg_type == "x");
        CHECK(parsed.value().subshell_id == "s");
    }
    CHECK(parse_header("{\"msg_id\":\"caf\xc3\xa9\",\"msg_type\":\"x\"}").value().msg_id == "café");
}

TEST_CASE("almost plain headers are refused", "[protocol][header]") {
    for (const char* text :
         {R"({"msg_id":"m","msg_type":"x",})",
          R"({,"msg_id":"m","msg_type":"x"})",
          R"({"msg_id":"m" "msg_type":"x"})",
          R"({"msg_id":"m",,"msg_type":"x"})",
          R"({"msg_id":"m","msg_type":"x"}})",
          R"({"msg_id":"m","msg_type":"x")",
          R"({"msg_id":"m","msg_type":"x)",
          R"({"msg_id":"m","msg_type":"x","a":nul})",
          R"({"msg_id":"m","msg_type":"x","a":nulll})",
          R"({"msg_id":"m","msg_type":"x","a":})",
          R"({"msg_id":"m","msg_type":"x","a"})",
          R"({"msg_id":"m","msg_type":"x",a:"b"})",
          "{\"msg_id\":\"m\",\"msg_type\":\"x\ty\"}"}) {
        check_header_refused(text, "not valid JSON");
    }
}

TEST_CASE("a header written as text is the header", "[protocol][header]") {
    auto header = make_header("x", "s", "quote\" \\ \n café \x7f");
    CHECK(nlohmann::json::parse(to_json_text(header)) == to_json(header));
    header.subshell_id = "\xff";
    CHECK(parse_header(to_json_text(header)).value().subshell_id == "\xef\xbf\xbd");
}

TEST_CASE("of a repeated field the last one counts", "[protocol][header]") {
    const auto parsed = parse_header(
        R"({"msg_id":"a","msg_type":"x","subshell_id":"s","msg_id":"b","subshell_id":null})");
    REQUIRE(parsed.has_value());
    CHECK(parsed.value().msg_id == "b");
    CHECK(!parsed.value().subshell_id.has_value());
    check_header_refused(R"({"msg_id":"a","msg_type":"x","msg_id":5})", "msg_id is missing");
}

TEST_CASE("a header without msg_id or msg_type is refused", "[protocol][header]") {
    check_header_refused("{}", "msg_id is missing");
    check_header_refused(R"({"msg_type":"x"})", "msg_id is missing");
    check_header_refused(R"({"msg_id":"m"})", "msg_type is missing");
    check_header_refused(R"({"msg_id":"","msg_type":"x"})", "msg_id is missing");
    check_header_refused(R"({"msg_id":"m","msg_type":""})", "msg_type is missing");
    check_header_refused(R"({"msg_id":7,"msg_type":"x"})", "msg_id is missing");
    check_header_refused(R"({"msg_id":"m","msg_type":{"a":"x"}})", "msg_type is missing");
    check_header_refused(R"({"msg_id":["m"],"msg_type":"x"})", "msg_id is missing");
    check_header_refused(R"({"a":{"msg_id":"m","msg_type":"x"}})", "msg_id is missing");
}

TEST_CASE("a header that is not an object is refused", "[protocol][header]") {
    for (const char* text :
         {"[]", "[{\"msg_id\":\"m\"}]", "\"m\"", "1", "1.5", "-1", "null", "true"}) {
        check_header_refused(text, "not a JSON object");
    }
    for (const char* text :
         {"", "{", "{\"msg_id\":", "{}x", "{\"msg_id\":\"\xff\",\"msg_type\":\"x\"}"}) {
        check_header_refused(text, "not valid JSON");
    }
    const std::string whole = R"({"msg_id":"m","msg_type":"x"})";
    check_header_refused(whole + std::string("\0}", 2), "not valid JSON");
}

TEST_CASE("limits::kHeaderBytesMax bounds a header", "[protocol][header][limits]") {
    const std::string head = R"({"msg_id":"m","msg_type":"x"})";
    const std::string padded = head + std::string(limits::kHeaderBytesMax - head.size(), ' ');
    CHECK(parse_header(padded).has_value());
    CHECK(parse_parent_header(padded).has_value());
    check_header_refused(padded + " ", "longer than");
    CHECK(parse_parent_header(padded + " ").has_error());
}

TEST_CASE("limits::kHeaderFieldBytesMax bounds each field", "[protocol][header][limits]") {
    const std::string field =
        GENERATE("msg_id", "session", "username", "date", "msg_type", "version", "subshell_id");
    nlohmann::json value{{"msg_id", "m"}, {"msg_type", "x"}};
    value[field] = std::string(limits::kHeaderFieldBytesMax, 'f');
    CHECK(parse_header(dump_json(value)).has_value());
    value[field] = std::string(limits::kHeaderFieldBytesMax + 1, 'f');
    check_header_refused(dump_json(value), "too long");
    CHECK(parse_parent_header(dump_json(value)).has_error());
}

TEST_CASE("limits::kJsonDepthMax bounds a header too", "[protocol][header][limits]") {
    const auto nested = [](int depth) {
        const auto count = static_cast<std::size_t>(depth - 1);  // the object is the first level
        return R"({"msg_id":"m","msg_type":"x","a":)" + std::string(count, '[') +
               std::string(count, ']') + "}";
    };
    CHECK(parse_header(nested(limits::kJsonDepthMax)).has_value());
    check_header_refused(nested(limits::kJsonDepthMax + 1), "too deep");
}

TEST_CASE("a parent header may be empty but not malformed", "[protocol][header]") {
    for (const char* text : {"{}", " { } ", R"({"username":"u"})"}) {
        CAPTURE(text);
        const auto parent = parse_parent_header(text);
        REQUIRE(parent.has_value());
        CHECK(parent.value().msg_id.empty());
    }
    CHECK(parse_parent_header(R"({"msg_id":"p","msg_type":"x"})").value().msg_id == "p");
    for (const char* text : {"", "null", "[]", "{", "\"\"", "0"}) {
        CAPTURE(text);
        const auto parent = parse_parent_header(text);
        REQUIRE(parent.has_error());
        CHECK(parent.error().code() == ErrorCode::kProtocol);
        CHECK_THAT(parent.error().message(), Contains("parent_header"));
    }
}

TEST_CASE("a new header is fresh, dated and survives its own text", "[protocol][header]") {
    const auto header = make_header("status", "session-1", "cellkeep");
    // The UUID 4 form of RFC 9562: version 4, variant 10.
    CHECK(std::regex_match(
        header.msg_id,
        std::regex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")));
    CHECK(header.version == "5.5");
    CHECK(header.date.size() == 27);
    const auto again = parse_header(dump_json(to_json(header)));
    REQUIRE(again.has_value());
    CHECK(again.value().msg_id == header.msg_id);
    CHECK(again.value().session == "session-1");
    CHECK(again.value().username == "cellkeep");
    CHECK(again.value().date == header.date);
    CHECK(again.value().msg_type == "status");
    CHECK(!again.value().subshell_id.has_value());

    std::set<std::string> ids;
    for (int i = 0; i < 1000; ++i) {
        ids.insert(make_header("status", "s", "u").msg_id);
    }
    CHECK(ids.size() == 1000);
}
