// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/output_list.hpp"

#include "protocol/json.hpp"
#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <string>

using cellkeep::protocol::parse_json;
using cellkeep::protocol::RawJson;
using cellkeep::session::MimeBundle;
using cellkeep::session::OutputList;
using nlohmann::json;
namespace limits = cellkeep::limits;

namespace {

MimeBundle picture(const std::string& text) {
    return {RawJson(json{{"text/plain", text}}.dump()), RawJson("{}")};
}

json listed(OutputList& list) {
    return parse_json(cellkeep::session::outputs_text(list.take()).join(), "outputs").value();
}

std::string shown(const json& output) {
    return output["data"]["text/plain"];
}

}  // namespace

TEST_CASE("updates find their displays in another program", "[session][outputs][passing]") {
    OutputList left(1000);
    CHECK(left.add_display(picture("a"), "one", 10));
    CHECK(left.add_display(picture("b"), "two", 10));
    CHECK(left.add_display(picture("c"), "one", 10));
    left.update_display("one", picture("new"), 20);
    CHECK(left.add_display(picture("d"), "one", 10));
    left.add_stream("stdout", "x", 1);
    const std::uint64_t retained = left.retained_bytes();
    OutputList next(1000);
    REQUIRE(next.go_on(left.pass_on()).has_value());
    CHECK(left.size() == 0);
    CHECK(next.retained_bytes() == retained);
    next.update_display("one", picture("newer"), 10);
    next.add_stream("stdout", "y", 1);
    const json all = listed(next);
    REQUIRE(all.size() == 5);
    for (const std::size_t place : {0U, 2U, 3U}) {
        CHECK(shown(all[place]) == "newer");
    }
    CHECK(shown(all[1]) == "b");
    CHECK(all[4]["text"] == "xy");
}

TEST_CASE("an update changes every display of its id and no other", "[session][outputs]") {
    OutputList list(1000);
    CHECK(list.add_display(picture("a"), "one", 10));
    CHECK(list.add_display(picture("b"), "two", 10));
    CHECK(list.add_display(picture("c"), "one", 10));
    CHECK(list.add_display(picture("d"), "", 10));
    list.update_display("one", picture("new"), 10);
    CHECK(list.add_display(picture("e"), "one", 10));
    list.update_display("none", picture("lost"), 10);
    list.update_display("", picture("lost"), 10);
    SECTION("once") {
        const json all = listed(list);
        REQUIRE(all.size() == 5);
        CHECK(shown(all[0]) == "new");
        CHECK(shown(all[1]) == "b");
        CHECK(shown(all[2]) == "new");
        CHECK(shown(all[3]) == "d");
        CHECK(shown(all[4]) == "e");
    }
    SECTION("and again, with what was shown since") {
        list.update_display("one", picture("newer"), 10);
        const json all = listed(list);
        CHECK(shown(all[0]) == "newer");
        CHECK(shown(all[2]) == "newer");
        CHECK(shown(all[4]) == "newer");
        CHECK(shown(all[1]) == "b");
    }
    CHECK(list.left_out() == 0);
}

TEST_CASE("displays that were updated together share what they show", "[session][outputs]") {
    OutputList list(1000);
    for (int i = 0; i < 3; ++i) {
        CHECK(list.add_display(picture("x"), "id", 10));
    }
    list.update_display("id", picture("y"), 10);
    const auto outputs = list.take();
    const auto bundle = [&](std::size_t i) {
        return std::get<cellkeep::session::DisplayOutput>(outputs[i]).bundle;
    };
    CHECK(bundle(0) == bundle(1));
    CHECK(bundle(1) == bundle(2));
}

TEST_CASE("a replaced display gives its room back", "[session][outputs]") {
    OutputList list(1000);
    const std::size_t most = limits::kAnswerDisplayBytesMax;
    CHECK(list.add_display(picture("progress"), "bar", most));
    for (int i = 0; i < 100; ++i) {
        list.update_display("bar", picture("progress " + std::to_string(i)), most);
    }
    CHECK(list.left_out() == 0);
    CHECK_FALSE(list.add_display(picture("no room"), "", 1));
    list.update_display("bar", picture("done"), most - 1);
    CHECK(list.add_display(picture("room"), "", 1));
    CHECK(list.left_out() == 1);
    const json all = listed(list);
    REQUIRE(all.size() == 2);
    CHECK(shown(all[0]) == "done");
}

TEST_CASE(
    "limits::kAnswerDisplayBytesMax holds for each display that an update changes",
    "[session][outputs][limits]") {
    OutputList list(1000);
    CHECK(list.add_display(picture("a"), "id", 1));
    CHECK(list.add_display(picture("b"), "id", 1));
    const std::size_t half = limits::kAnswerDisplayBytesMax / 2;
    list.update_display("id", picture("too large"), half + 1);
    CHECK(list.left_out() == 1);
    list.update_display("id", picture("fits"), half);
    CHECK(list.left_out() == 1);
    const json all = listed(list);
    CHECK(shown(all[0]) == "fits");
    CHECK(shown(all[1]) == "fits");
}

TEST_CASE(
    "limits::kAnswerOutputsMax bounds the list, not its updates", "[session][outputs][limits]") {
    OutputList list(1000);
    for (std::size_t i = 0; i < limits::kAnswerOutputsMax; ++i) {
        REQUIRE(list.add_display(picture("x"), "id", 1));
    }
    CHECK_FALSE(list.add_display(picture("x"), "id", 1));
    CHECK_FALSE(list.add_result({picture("x"), 1}, 1));
    CHECK_FALSE(list.add_error({RawJson("\"E\""), RawJson("\"\""), RawJson("[]")}, 1));
    list.add_stream("stdout", "x", 1);
    CHECK(list.left_out() == 3);
    list.update_display("id", picture("last"), 1);
    const json all = listed(list);
    REQUIRE(all.size() == limits::kAnswerOutputsMax);
    CHECK(shown(all.front()) == "last");
    CHECK(shown(all.back()) == "last");
}

TEST_CASE("what was cleared takes no room and is not found", "[session][outputs]") {
    OutputList list(1000);
    CHECK(list.add_display(picture("a"), "id", limits::kAnswerDisplayBytesMax));
    list.clear();
    CHECK(list.add_display(picture("b"), "", limits::kAnswerDisplayBytesMax));
    list.update_display("id", picture("c"), 1);
    const json all = listed(list);
    REQUIRE(all.size() == 1);
    CHECK(shown(all[0]) == "b");
}

TEST_CASE("stream text is spliced as it came", "[session][outputs]") {
    OutputList list(1000);
    list.add_stream("stdout", R"(a\n\u00e9\")", 5);
    list.add_stream("stdout", "b", 1);
    list.add_stream("stderr", "c", 1);
    const json all = listed(list);
    REQUIRE(all.size() == 2);
    CHECK(all[0] == json{{"output_type", "stream"}, {"name", "stdout"}, {"text", "a\né\"b"}});
    CHECK(all[1]["name"] == "stderr");
}

TEST_CASE("what is kept is counted", "[session][outputs]") {
    OutputList list(1000);
    const auto before = list.retained_bytes();
    CHECK(list.add_display(picture("a"), "", 5000));
    CHECK(list.retained_bytes() >= before + 5000);
    list.add_stream("stdout", std::string(100, 'x'), 100);
    CHECK(list.retained_bytes() >= before + 5100);
}
