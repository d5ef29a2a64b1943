// SPDX-License-Identifier: Apache-2.0
//
// The bounds that openapi.json states for a session's limits are those that the server applies.
#include "kernel-manager/api/bodies/request_body.hpp"
#include "kernel-manager/api/openapi.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace cellkeep::api {
namespace {

using nlohmann::json;

const json& stated_limits() {
    static const json kDocument = json::parse(openapi_document());
    return kDocument["components"]["schemas"]["LimitsRequest"]["properties"];
}

/// What a new session's body with this one limit is answered: the fields at fault.
std::string faults_of(const std::string& limit, const json& value) {
    FieldErrors errors;
    (void)parse_session_options({{"limits", {{limit, value}}}}, Offer{{"python"}, {}}, errors);
    std::string faults;
    for (const auto& error : errors) {
        faults += error.pointer;
    }
    return faults;
}

}  // namespace

TEST_CASE(
    "a limit at the document's minimum is taken, and one below it is refused", "[agent][body]") {
    for (const auto& [name, stated] : stated_limits().items()) {
        INFO(name);
        const json& least = stated["minimum"];
        CHECK(faults_of(name, least) == "");
        const json below = least.is_number_integer() ? json(least.get<std::int64_t>() - 1)
                                                     : json(least.get<double>() * 0.99);
        CHECK(faults_of(name, below) == "/limits/" + name);
    }
}

TEST_CASE(
    "a limit at the document's maximum is taken, and one above it is refused", "[agent][body]") {
    for (const auto& [name, stated] : stated_limits().items()) {
        INFO(name);
        const json& most = stated["maximum"];
        CHECK(faults_of(name, most) == "");
        // Beyond UINT64_MAX, JSON has floating-point numbers only, and no limit takes those.
        const bool is_largest =
            most.is_number_unsigned() && most.get<std::uint64_t>() == UINT64_MAX;
        const json above = is_largest                 ? json(1.8446744073709552e19)
                           : most.is_number_integer() ? json(most.get<std::uint64_t>() + 1)
                                                      : json(most.get<double>() * 1.01);
        CHECK(faults_of(name, above) == "/limits/" + name);
    }
}

}  // namespace cellkeep::api
