// SPDX-License-Identifier: Apache-2.0
//
// parse_json: never throws, holds to its depth, and what it accepts survives its own text.
#include "protocol/json.hpp"
#include "protocol/limits.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace {

int depth_of(const nlohmann::json& value) {
    int deepest = 0;
    if (value.is_structured()) {
        for (const auto& element : value) {
            deepest = std::max(deepest, depth_of(element));
        }
        return deepest + 1;
    }
    return 0;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cellkeep::protocol;
    const auto value = parse_json(cellkeep::fuzz::Input(data, size).rest(), "input");
    if (value.has_error()) {
        // Names the place, quotes nothing.
        CELLKEEP_CHECK(value.error().message().size() < 100);
        return 0;
    }
    CELLKEEP_CHECK(depth_of(value.value()) <= cellkeep::limits::kJsonDepthMax);
    const auto again = parse_json(dump_json(value.value()), "dump");
    CELLKEEP_CHECK(again.has_value() && again.value() == value.value());
    return 0;
}
