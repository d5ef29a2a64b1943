// SPDX-License-Identifier: Apache-2.0
//
// One request of a visitor and the answer of the server inside. io_context thread only.
#pragma once

#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/message/response.hpp"
#include "kernel-manager/preview/inner_connection.hpp"
#include "kernel-manager/preview/preview_place.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>

namespace cellkeep::preview {

/// Sends the head and the request's body, and returns the answer, whose body is read while it is
/// sent: neither end is faster than the other takes it. A visitor that goes ends the connection.
boost::asio::awaitable<http::Response> exchange(
    http::Request& request,
    const PreviewPlace& place,
    std::shared_ptr<InnerConnection> inner,
    std::string head);

}  // namespace cellkeep::preview
