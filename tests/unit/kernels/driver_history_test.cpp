// SPDX-License-Identifier: Apache-2.0
#include "kernels/driver/session_history.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::kernels::driver {

using nlohmann::json;

TEST_CASE("a history without entries is empty, whatever is asked", "[kernel][driver]") {
    const SessionHistory history;
    for (const char* kind : {"tail", "range", "search", "nonsense"}) {
        CHECK(history.answer({{"hist_access_type", kind}})["history"].empty());
    }
}

TEST_CASE("a tail is the last entries, a range has its ends", "[kernel][driver]") {
    SessionHistory history;
    for (int count = 1; count <= 5; ++count) {
        history.add(count, "c" + std::to_string(count));
    }
    history.set_output("five");
    const auto counts = [&](const json& request) {
        json list = json::array();
        const json answer = history.answer(request);
        for (const json& entry : answer["history"]) {
            list.push_back(entry[1]);
        }
        return list;
    };
    CHECK(counts({{"hist_access_type", "tail"}, {"n", 2}}) == json({4, 5}));
    CHECK(counts({{"hist_access_type", "tail"}, {"n", 0}}).empty());
    CHECK(counts({{"hist_access_type", "tail"}, {"n", -1}}).empty());
    CHECK(counts({{"hist_access_type", "range"}, {"start", 2}, {"stop", 4}}) == json({2, 3}));
    CHECK(counts({{"hist_access_type", "range"}, {"start", 4}, {"session", 1}}) == json({4, 5}));
    CHECK(counts({{"hist_access_type", "range"}, {"session", 2}}).empty());
    CHECK(counts({{"hist_access_type", "range"}, {"start", 9}}).empty());
    CHECK(
        history.answer({{"hist_access_type", "tail"}, {"n", 1}, {"output", true}})["history"] ==
        json::parse(R"([[1,5,["c5","five"]]])"));
}

TEST_CASE("a search takes patterns, and each text once if asked", "[kernel][driver]") {
    SessionHistory history;
    for (const char* code : {"a", "ab", "a", "b"}) {
        history.add(1, code);
    }
    const auto found = [&](const char* pattern, bool unique) {
        return history
            .answer(
                {{"hist_access_type", "search"},
                 {"pattern", pattern},
                 {"unique", unique}})["history"]
            .size();
    };
    CHECK(found("a", false) == 2);
    CHECK(found("a", true) == 1);
    CHECK(found("a*", false) == 3);
    CHECK(found("?", true) == 2);
    CHECK(found("c", false) == 0);
    CHECK(found("", false) == 0);
}

TEST_CASE(
    "the oldest entries give way at kHistoryEntriesMax and kHistoryBytesMax", "[kernel][driver]") {
    SessionHistory many;
    for (std::size_t index = 0; index <= kHistoryEntriesMax; ++index) {
        many.add(static_cast<int>(index), "x");
    }
    const json all{{"hist_access_type", "range"}, {"start", 0}};
    CHECK(many.answer(all)["history"].size() == kHistoryEntriesMax);
    SessionHistory large;
    large.add(1, std::string(kHistoryBytesMax, 'x'));
    CHECK(large.answer(all)["history"].size() == 1);
    large.set_output("y");
    CHECK(large.answer(all)["history"].empty());
    large.set_output("of nothing");
}

TEST_CASE("patterns", "[kernel][driver]") {
    CHECK(matches_glob("*", ""));
    CHECK(matches_glob("a*c*", "abcabc"));
    CHECK(matches_glob("*a?c", "xxabc"));
    CHECK_FALSE(matches_glob("", "a"));
    CHECK_FALSE(matches_glob("a", "A"));
    CHECK_FALSE(matches_glob("a?", "a"));
    CHECK_FALSE(matches_glob("*b", "abc"));
    CHECK_FALSE(matches_glob("a*a", "a"));
}

}  // namespace cellkeep::kernels::driver
