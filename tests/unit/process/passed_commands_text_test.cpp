// SPDX-License-Identifier: Apache-2.0
//
// Passed commands as they are written down: what is read of it, and what is refused.
#include "kernel-manager/output/output_pipe.hpp"
#include "kernel-manager/process/passed_commands.hpp"
#include "tests/unit/process/fake_commands.hpp"

#include <catch2/catch.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::process {
namespace {

using nlohmann::json;

/// A table's commands as they are written: one that runs, one with a terminal, one that has ended.
struct WrittenFixture {
    boost::asio::io_context io;
    test::FakeCommands commands{io};
    json text;
    json ended;
    std::vector<CommandEnds> ends;

    WrittenFixture() {
        (void)commands.start_one();
        CommandOrder order{{"/bin/bash"}, {}, {}, false, {}};
        order.terminal = CommandOrder::Terminal{};
        (void)commands.start_one(order);
        (void)commands.start_one();
        commands.write_out(0, "text");
        commands.exit(3, 0);
        commands.poll();
        PassedCommands passed = commands.table.pass_on();
        text = write_commands(passed);
        ended = write_ended(passed);
        ends = take_ends(passed);
    }
    PassedCommands read() { return read_commands(text, ended, std::move(ends)); }
};

TEST_CASE("what is written is read, also as an older format has it", "[process][passing]") {
    WrittenFixture written;
    SECTION("as it is") {
        const PassedCommands read = written.read();
        CHECK(write_commands(read) == written.text);
        CHECK(read.ended == written.ended.get<std::vector<std::string>>());
        CHECK(read.commands[1].ends.controller);
    }
    SECTION("commands that are over, without what is new") {
        json old = json::array({written.text[2]});
        old[0].erase("life");
        const PassedCommands read = read_commands(old, json(), {});
        CHECK(read.ended == std::vector<std::string>{read.commands.at(0).info.id});
        CHECK(read.commands[0].worker == 0);
    }
    SECTION("none") {
        CHECK(read_commands(json::array(), json(), {}).commands.empty());
    }
}

TEST_CASE("what is not of the form is not read", "[process][passing]") {
    using Edit = std::function<void(json&)>;
    const auto [what, edit] = GENERATE(table<std::string, Edit>({
        {"no list", [](json& all) { all = 5; }},
        {"an object",
         [](json& all) {
             all = json::object({{"info", 1}});
         }},
        {"no info", [](json& all) { all[0].erase("info"); }},
        {"no id", [](json& all) { all[0]["info"].erase("id"); }},
        {"an id that is a number", [](json& all) { all[0]["info"]["id"] = 5; }},
        {"no argv", [](json& all) { all[0]["info"].erase("argv"); }},
        {"no output", [](json& all) { all[0].erase("output"); }},
        {"output without a place", [](json& all) { all[0]["output"].erase("from"); }},
        {"a piece of no stream", [](json& all) { all[0]["output"]["pieces"][0].erase("stderr"); }},
        {"a worker that is a text", [](json& all) { all[0]["life"]["worker"] = "one"; }},
        {"one that runs and has no process", [](json& all) { all[0]["life"]["worker"] = 0; }},
        {"one that runs and has no life", [](json& all) { all[0].erase("life"); }},
        {"one that has ended and is a process", [](json& all) { all[2]["life"]["worker"] = 9; }},
        {"an end of no kind", [](json& all) { all[2]["info"]["end"]["kind"] = 4; }},
        {"an end below all kinds", [](json& all) { all[2]["info"]["end"]["kind"] = -1; }},
        {"an end without a status", [](json& all) { all[2]["info"]["end"].erase("status"); }},
        {"two with one id", [](json& all) { all[1]["info"]["id"] = all[0]["info"]["id"]; }},
        {"two that are one process", [](json& all) { all[1]["life"]["worker"] = 1; }},
        {"a terminal without rows", [](json& all) { all[1]["info"]["terminal"].erase("rows"); }},
        {"a terminal of no rows", [](json& all) { all[1]["info"]["terminal"]["rows"] = 0; }},
        {"a terminal that is too wide",
         [](json& all) { all[1]["info"]["terminal"]["columns"] = kTerminalSideMax + 1; }},
        {"a terminal that is missing",
         [](json& all) {
             all[0]["info"]["terminal"] = {{"rows", 1}, {"columns", 1}};
         }},
        {"more read than written", [](json& all) { all[0]["life"]["read"] = 5; }},
        {"a rest that is a whole character",
         [](json& all) { all[0]["life"]["out_rest"] = "abcd"; }},
        {"the same of stderr", [](json& all) { all[0]["life"]["err_rest"] = "abcd"; }},
        {"input without what waits", [](json& all) { all[0]["life"]["input"].erase("waiting"); }},
        {"input without its end", [](json& all) { all[0]["life"]["input"].erase("finishing"); }},
    }));
    CAPTURE(what);
    WrittenFixture written;
    edit(written.text);
    CHECK_THROWS_AS(written.read(), json::exception);
}

TEST_CASE("the list of those that have ended is theirs", "[process][passing]") {
    WrittenFixture written;
    const std::string id = written.ended.at(0);
    const json ended = GENERATE_COPY(
        json::array(), json::array({"prc_0"}), json::array({id, id}), json::array({5}), json(id));
    written.ended = ended;
    CHECK_THROWS_AS(written.read(), json::exception);
}

json many(const json& one, std::size_t count, bool runs) {
    json all = json::array();
    for (std::size_t i = 0; i < count; ++i) {
        all.push_back(one);
        all.back()["info"]["id"] = "prc_" + std::to_string(i);
        all.back()["life"]["worker"] = runs ? i + 1 : 0;
    }
    return all;
}

std::vector<CommandEnds> with_controllers(std::size_t count) {
    std::vector<CommandEnds> ends(count);
    for (CommandEnds& one : ends) {
        one.controller = make_pipe().value().read_end;
    }
    return ends;
}

TEST_CASE("no more is read than a session can have", "[process][passing]") {
    const WrittenFixture written;
    const json& running = written.text[0];
    CHECK(read_commands(many(running, kCommandsMax, true), {}, {}).commands.size() == kCommandsMax);
    CHECK_THROWS_AS(read_commands(many(running, kCommandsMax + 1, true), {}, {}), json::exception);
    const json& terminal = written.text[1];
    CHECK_NOTHROW(
        read_commands(many(terminal, kTerminalsMax, true), {}, with_controllers(kTerminalsMax)));
    CHECK_THROWS_AS(
        read_commands(
            many(terminal, kTerminalsMax + 1, true), {}, with_controllers(kTerminalsMax + 1)),
        json::exception);
    const json& over = written.text[2];
    CHECK_NOTHROW(read_commands(many(over, kEndedCommandsMax, false), {}, {}));
    CHECK_THROWS_AS(
        read_commands(many(over, kEndedCommandsMax + 1, false), {}, {}), json::exception);
}

TEST_CASE("the bytes of a passed command are bounded", "[process][passing]") {
    const WrittenFixture written;
    json one = json::array({written.text[0]});
    json& input = one[0]["life"]["input"]["waiting"];
    input = std::string(kInputBytesMax, 'x');
    CHECK_NOTHROW(read_commands(one, {}, {}));
    input = std::string(kInputBytesMax + 1, 'x');
    CHECK_THROWS_AS(read_commands(one, {}, {}), json::exception);
    input = "";
    json& rest = one[0]["life"]["out_rest"];
    rest = std::string(session::kUtf8RestBytesMax, '\xf0');
    CHECK(read_commands(one, {}, {}).commands[0].out_rest.size() == session::kUtf8RestBytesMax);
    json& pieces = one[0]["output"]["pieces"];
    const std::string half(kOutputBytesMax / 2, 'x');
    const json piece = {{"stderr", false}, {"text", half}};
    pieces = json::array({piece, piece});
    CHECK_NOTHROW(read_commands(one, {}, {}));
    pieces.push_back({{"stderr", true}, {"text", "x"}});
    CHECK_THROWS_AS(read_commands(one, {}, {}), json::exception);
}

}  // namespace
}  // namespace cellkeep::process
