// SPDX-License-Identifier: Apache-2.0
//
// What a client asks of the contents API: the query of a GET and the bodies of the other methods. A
// body may hold the content of a file: no document tree is built of it, and it is checked in slices
// (contents_turns.hpp). Every failure is kInvalidArgument in words for the client.
#pragma once

#include "kernel-manager/http/message/target.hpp"
#include "kernel-manager/jupyter/rest/contents/file_content.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::jupyter {

enum class ContentType { kFile, kNotebook, kDirectory };
/// "file" for every type that is not known, as Jupyter Server takes it; nothing for "".
std::optional<ContentType> parse_content_type(std::string_view text);

struct ContentsQuery {
    std::optional<ContentType> type;
    std::optional<ContentFormat> format;
    bool content = true;
    bool hash = false;
};
Result<ContentsQuery> read_contents_query(const http::Target& target);

/// Text members are at most limits::kJupyterFieldBytesMax. "" or nothing: missing or null.
struct ContentsOrder {
    std::optional<ContentType> type;
    std::string format;
    std::string path;       // PATCH: the new one
    std::string copy_from;  // POST
    std::string ext;        // POST
    /// Of an upload in pieces, from 1; -1 is the last.
    std::optional<int> chunk;
    /// The JSON text of the content, a view into the body. "" if there is none.
    std::string_view content;
};
/// Nothing if the body is blank or null. The body must outlive the result.
boost::asio::awaitable<Result<std::optional<ContentsOrder>>> read_contents_order(
    const std::string& body);

}  // namespace cellkeep::jupyter
