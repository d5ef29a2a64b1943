// SPDX-License-Identifier: Apache-2.0
//
// From a request to what its JSON body asks for. A long body is parsed and looked into by another
// thread (kernel-manager/http/message/text_reading.hpp), with the same answer as a short one.
#pragma once

#include "kernel-manager/api/bodies/object_reader.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/message/text_reading.hpp"

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::api {

enum class EmptyBody { kAllowed, kRefused };

struct ParsedBody {
    nlohmann::json value;
    std::optional<http::Problem> problem;
};
/// The body as JSON. 415 unless the content type is JSON; 400 with the place unless the text is
/// JSON; an empty body is {} where that is allowed. Pure.
ParsedBody parse_body(std::string_view text, std::string_view content_type, EmptyBody empty);

/// 422 with all of them.
http::Problem invalid_body(FieldErrors errors);

/// Fills errors; the order counts only if there are none. A pure function of the body that owns all
/// else that it touches.
template <typename Order>
using OrderReader = std::function<Order(const nlohmann::json& body, FieldErrors& errors)>;

template <typename Order>
struct BodyOrder {
    Order order{};  // counts only if there is no problem
    std::optional<http::Problem> problem;
};

/// Takes the body out of the request.
template <typename Order>
boost::asio::awaitable<BodyOrder<Order>> read_order(
    http::Request& request, EmptyBody empty, OrderReader<Order> read) {
    http::TextReader<BodyOrder<Order>> read_text =
        [type = std::string(request.headers.get("Content-Type")), empty, read = std::move(read)](
            const std::string& text) {
            BodyOrder<Order> found;
            ParsedBody body = parse_body(text, type, empty);
            found.problem = std::move(body.problem);
            if (!found.problem) {
                FieldErrors errors;
                found.order = read(body.value, errors);
                if (!errors.empty()) {
                    found.problem = invalid_body(std::move(errors));
                }
            }
            return found;
        };
    BodyOrder<Order> found =
        co_await http::read_body<BodyOrder<Order>>(request, std::move(read_text));
    co_return found;
}

}  // namespace cellkeep::api
