// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/guest_error.hpp"

#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

using cellkeep::protocol::Channel;
using cellkeep::protocol::make_header;
using cellkeep::protocol::Message;
using cellkeep::session::read_guest_error;
using nlohmann::json;
namespace limits = cellkeep::limits;

namespace {

Message error(const json& content) {
    return Message::make(Channel::kIopub, make_header("error", "k", "u"), json::object(), content);
}

}  // namespace

TEST_CASE("an error is read without terminal colours", "[session][guest_error]") {
    const auto said = read_guest_error(error(
        {{"ename", "E"}, {"evalue", "\x1b[31mv\x1b[0m é"}, {"traceback", {"\x1b[1ma", "b"}}}));
    CHECK(said.name == "E");
    CHECK(said.message == "v é");
    CHECK(said.traceback == std::vector<std::string>{"a", "b"});
}

TEST_CASE(
    "limits::kErrorTextBytesMax is what is read of an error", "[session][guest_error][limits]") {
    const std::size_t most = limits::kErrorTextBytesMax;
    const auto whole = read_guest_error(error({{"evalue", std::string(most, 'x')}}));
    CHECK(whole.message == std::string(most, 'x'));
    const auto longer = read_guest_error(error({{"evalue", std::string(most + 10, 'x')}}));
    CHECK(longer.message.size() < most + 64);
    CHECK(longer.message.ends_with("the rest is left out …"));

    const std::string line(most / 2, 'y');
    CHECK(
        read_guest_error(error({{"traceback", {line}}})).traceback ==
        std::vector<std::string>{line});
    const auto lines = read_guest_error(error({{"traceback", {line, line, line}}})).traceback;
    REQUIRE(lines.size() == 3);
    CHECK(lines[0] == line);
    CHECK(lines[1].size() < line.size());
    CHECK(lines[2] == "… the rest is left out …");

    const auto name = read_guest_error(error({{"ename", std::string(1 << 20, 'N')}})).name;
    CHECK(name.size() == limits::kHeaderFieldBytesMax);
}

TEST_CASE("what is no error's text is read as nothing", "[session][guest_error]") {
    for (const json& content :
         {json::object(),
          json{{"ename", 1}, {"evalue", {"a"}}, {"traceback", "a"}},
          json{{"ename", nullptr}, {"evalue", true}, {"traceback", {{"a", "b"}}}},
          json{{"traceback", {1, nullptr, {"nested"}}}}}) {
        const auto said = read_guest_error(error(content));
        CHECK(said.name.empty());
        CHECK(said.message.empty());
        CHECK(said.traceback.empty());
    }
}
