// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/order_reading.hpp"

#include "protocol/json.hpp"
#include "protocol/limits.hpp"

namespace cellkeep::api {

namespace {

bool is_json_type(std::string_view content_type) {
    std::string_view type = content_type.substr(0, content_type.find(';'));
    while (!type.empty() && type.back() == ' ') {
        type.remove_suffix(1);
    }
    return http::equals_ignoring_case(type, "application/json");
}

}  // namespace

ParsedBody parse_body(std::string_view text, std::string_view content_type, EmptyBody empty) {
    if (text.empty() && empty == EmptyBody::kAllowed) {
        return {nlohmann::json::object(), std::nullopt};
    }
    if (!is_json_type(content_type)) {
        return {
            nullptr, http::make_problem(415, "Send the body as Content-Type: application/json.")};
    }
    auto value = protocol::parse_json(
        text, "the body", protocol::RepeatedKeys::kLastCounts, limits::kHttpBodyJsonValuesMax);
    if (value.has_error()) {
        return {
            nullptr,
            http::make_problem(
                400, "malformed-json", "The body is not JSON", value.error().message())};
    }
    return {std::move(value).value(), std::nullopt};
}

http::Problem invalid_body(FieldErrors errors) {
    std::string detail = "The body has " + std::to_string(errors.size()) +
                         (errors.size() == 1 ? " error: " : " errors, the first: ");
    const auto& first = errors.front();
    detail += (first.pointer.empty() ? "the body" : first.pointer) + " " + first.message + ".";
    http::Problem problem = http::make_problem(422, std::move(detail));
    problem.errors = std::move(errors);
    return problem;
}

}  // namespace cellkeep::api
