// SPDX-License-Identifier: Apache-2.0
//
// From a request to what its JSON body asks for. A long body is parsed and looked into by another
// thread (kernel-manager/http/message/text_reading.hpp), with the same answer as a short one.
#pragma once

#include "kernel-manager/e2b/wire/fields.hpp"
#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/message/text_reading.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <utility>

namespace cellkeep::e2b {

/// A pure function of the body that owns all else that it touches.
template <typename Order>
using BodyReader = std::function<Result<Order>(const nlohmann::json& body)>;

/// Takes the body out of the request. An empty one is an object without members. kInvalidArgument:
/// it is no JSON; and what `read` says.
template <typename Order>
boost::asio::awaitable<Result<Order>> read_body(http::Request& request, BodyReader<Order> read) {
    http::TextReader<Result<Order>> read_text =
        [read = std::move(read)](const std::string& text) -> Result<Order> {
        BOOST_OUTCOME_TRY(const nlohmann::json body, parse_body(text));
        return read(body);
    };
    Result<Order> found = co_await http::read_body<Result<Order>>(request, std::move(read_text));
    co_return found;
}

}  // namespace cellkeep::e2b
