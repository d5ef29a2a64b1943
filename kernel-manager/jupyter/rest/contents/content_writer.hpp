// SPDX-License-Identifier: Apache-2.0
//
// Writes the content that a client sent to a file of a workspace, in slices (contents_turns.hpp): a
// string as it is or decoded from base64, a notebook's JSON as it came.
#pragma once

#include "kernel-manager/jupyter/rest/contents/contents_order.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::jupyter {

/// Takes the next bytes of the file.
using ContentSink = std::function<Status(std::string_view)>;

/// Whether an order has what a file of this type needs. kInvalidArgument: no content, content of
/// the wrong kind, a format that does not go with the type.
Status check_content(const ContentsOrder& order, ContentType type);

/// Gives the sink the file's bytes, in order. kInvalidArgument if the content is not base64 and
/// should be; else what the sink fails with. Precondition: check_content() is ok. `content` must
/// outlive the coroutine.
boost::asio::awaitable<Status> write_content(
    std::string_view content, ContentFormat format, ContentSink sink);

/// Of an order that check_content() is ok with.
ContentFormat format_of(const ContentsOrder& order, ContentType type);

}  // namespace cellkeep::jupyter
