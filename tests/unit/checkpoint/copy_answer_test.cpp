// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/copy_answer.hpp"

#include "protocol/limits.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::checkpoint {
namespace {

using nlohmann::json;

json copied() {
    return {
        {"status", "ok"},
        {"pid", 7},
        {"execution_count", 3},
        {"carried_threads", 5},
        {"goes_on", true},
        {"lost", {{"threads", 0}, {"children", 1}, {"sockets", 2}, {"shared_mappings", 3}}}};
}

json refused() {
    return {{"status", "error"}, {"ename", "NotForkable"}, {"evalue", "threads"}, {"count", 4}};
}

TEST_CASE("an interpreter says that there is a copy, or why there is none", "[checkpoint]") {
    const auto yes = read_copy_answer(copied().dump());
    REQUIRE(yes.has_value());
    const auto& copy = std::get<Copied>(yes.value());
    CHECK(copy.forked == 7);
    CHECK(copy.execution_count == 3);
    CHECK(copy.carried_threads == 5);
    CHECK(copy.goes_on);
    CHECK(copy.lost == Lost{0, 1, 2, 3});
    const auto no = read_copy_answer(refused().dump());
    REQUIRE(no.has_value());
    CHECK(std::get<NotForkable>(no.value()) == NotForkable{NotForkable::Why::kThreads, 4, {}});
    auto never = refused();
    never["carries"] = false;
    CHECK_FALSE(std::get<NotForkable>(read_copy_answer(never.dump()).value()).carries);
    for (const json& odd : {json(true), json(0), json("false"), json()}) {
        never["carries"] = odd;
        CHECK(std::get<NotForkable>(read_copy_answer(never.dump()).value()).carries);
    }
}

TEST_CASE("a hostile answer is refused, whatever is wrong with it", "[checkpoint]") {
    json answer = copied();
    SECTION("numbers of no process") {
        const json pid = GENERATE(
            json(0), json(1), json(-7), json(4194305), json(7.0), json("7"), json(true), json());
        answer["pid"] = pid;
    }
    SECTION("members that are missing") {
        answer.erase(
            GENERATE("pid", "execution_count", "carried_threads", "goes_on", "lost", "status"));
    }
    SECTION("counts") {
        const json count =
            GENERATE(json(-1), json(2147483648U), json(UINT64_MAX), json("0"), json::array());
        const char* const where = GENERATE("threads", "children", "sockets", "shared_mappings");
        answer["lost"][where] = count;
    }
    SECTION("an execution count out of range") {
        const char* const which = GENERATE("execution_count", "carried_threads");
        answer[which] = GENERATE(json(-1), json(2147483648U), json("1"));
    }
    SECTION("something that is neither true nor false") {
        answer["goes_on"] = GENERATE(json(0), json("true"), json());
    }
    SECTION("lost is no object") {
        answer["lost"] = GENERATE(json::array(), json(0), json());
    }
    SECTION("another status") {
        answer["status"] = GENERATE(json("OK"), json(1), json());
    }
    SECTION("a refusal for no known reason") {
        answer = refused();
        answer["evalue"] = GENERATE(json("whim"), json(""), json(4), json());
    }
    SECTION("a refusal by another name") {
        answer = refused();
        answer["ename"] = GENERATE(json("KernelError"), json(), json(1));
    }
    SECTION("a refusal without a count") {
        answer = refused();
        answer["count"] = GENERATE(json(-1), json("4"), json(2147483648U), json());
    }
    const auto read = read_copy_answer(answer.dump());
    REQUIRE(read.has_error());
    CHECK(read.error().code() == ErrorCode::kProtocol);
}

TEST_CASE("a thread that did not stop is named in characters that can be shown", "[checkpoint]") {
    const auto [said, shown] = GENERATE(table<json, std::string>({
        {"pool 1", "pool 1"},
        {"a name of more than fifteen", "a name of more "},
        {"\n\x1b[2J\xc3\xa9", "??[2J??"},
        {7, ""},
        {nullptr, ""},
    }));
    json answer = refused();
    answer["evalue"] = "thread";
    answer["name"] = said;
    const auto read = read_copy_answer(answer.dump());
    REQUIRE(read.has_value());
    CHECK(std::get<NotForkable>(read.value()) == NotForkable{NotForkable::Why::kThread, 4, shown});
}

TEST_CASE("text that is no answer at all is refused", "[checkpoint]") {
    const std::string text = GENERATE(
        std::string(), std::string("{"), std::string("[]"), std::string("null"), std::string("{}"));
    REQUIRE(read_copy_answer(text).has_error());
    CHECK(read_copy_answer(text).error().code() == ErrorCode::kProtocol);
}

TEST_CASE("an answer may have kCopyAnswerBytesMax bytes", "[checkpoint]") {
    json answer = copied();
    const std::size_t without = (answer.dump().size() + std::string(R"(,"x":"")").size());
    answer["x"] = std::string(limits::kCopyAnswerBytesMax - without, 'x');
    REQUIRE(answer.dump().size() == limits::kCopyAnswerBytesMax);
    CHECK(read_copy_answer(answer.dump()).has_value());
    answer["x"] = std::string(limits::kCopyAnswerBytesMax - without + 1, 'x');
    CHECK(read_copy_answer(answer.dump()).has_error());
}

}  // namespace
}  // namespace cellkeep::checkpoint
