// SPDX-License-Identifier: Apache-2.0
//
// Files of a session as SWE-ReX's clients read and write them: anywhere in the sandbox, by programs
// that run in it. io_context thread only.
#pragma once

#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/message/response.hpp"
#include "kernel-manager/session/session.hpp"
#include "kernel-manager/swerex/orders.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>

namespace cellkeep::swerex {

boost::asio::awaitable<http::Response> read_file(
    std::shared_ptr<session::Session> session, ReadOrder order);
boost::asio::awaitable<http::Response> write_file(
    std::shared_ptr<session::Session> session, WriteOrder order);
/// A form with "file", "target_path" and "unzip". The file passes through the workspace, whose size
/// bounds it.
boost::asio::awaitable<http::Response> take_upload(
    http::Request& request, std::shared_ptr<session::Session> session);

}  // namespace cellkeep::swerex
