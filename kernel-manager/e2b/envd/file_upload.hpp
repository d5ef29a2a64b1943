// SPDX-License-Identifier: Apache-2.0
//
// Files that come in one request: one whole body, or the parts of a form. Each is put in place when
// it is whole; a reader inside sees the old or the new contents. io_context thread only.
#pragma once

#include "kernel-manager/e2b/wire/rpc.hpp"
#include "kernel-manager/http/message/request.hpp"

#include <boost/asio/awaitable.hpp>

namespace cellkeep::e2b {

/// The handler of POST /files, of a route that streams.
boost::asio::awaitable<http::Response> take_upload(http::Request& request, RpcSession session);

}  // namespace cellkeep::e2b
