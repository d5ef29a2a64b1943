// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/websocket/stillness.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::http {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a counter that stands still is seen while somebody waits", "[http][websocket]") {
    const Stillness::Clock::time_point begin{};
    Stillness stillness(begin);
    CHECK(stillness.look(begin + 5s, true, 7) == 0s);  // the first look
    CHECK(stillness.look(begin + 6s, true, 7) == 1s);
    CHECK(stillness.look(begin + 9s, true, 7) == 4s);
    CHECK(stillness.look(begin + 10s, true, 8) == 0s);  // it moved
    CHECK(stillness.look(begin + 12s, true, 8) == 2s);
    CHECK(stillness.look(begin + 13s, false, 8) == 0s);  // nobody waits
    CHECK(stillness.look(begin + 20s, true, 8) == 0s);
    CHECK(stillness.look(begin + 21s, true, 8) == 1s);
}

}  // namespace
}  // namespace cellkeep::http
