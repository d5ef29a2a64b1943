// SPDX-License-Identifier: Apache-2.0
//
// /docs: the API's document to read and try in a browser, by a viewer that is part of the program.
// Nothing is fetched from elsewhere, and the page's Content-Security-Policy would not let it. Every
// client that reaches the server may open it: it holds no data; the page asks for a token before it
// reads /openapi.json. Never: serves a file from disk.
#pragma once

#include "kernel-manager/http/router.hpp"

#include <string_view>

namespace cellkeep::api {

/// One file of the page, as the build put it into the program. Empty bytes: built without it.
struct DocsFile {
    std::string_view path;  // as a client asks for it, below the base URL
    std::string_view media_type;
    std::string_view bytes;
};

/// nullptr: no such file.
const DocsFile* find_docs_file(std::string_view path);

/// Adds GET /docs and what its page loads.
void add_docs(http::Router& router);

}  // namespace cellkeep::api
