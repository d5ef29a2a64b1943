// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/docs.hpp"

#include "kernel-manager/http/message/problem.hpp"

#include <string>
#include <utility>

namespace cellkeep::api {

namespace {

/// Everything from this server, nothing inline, no frame around it. Pictures in the viewer's style
/// sheet are data: addresses.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

http::Response answer(const DocsFile& file) {
    if (file.bytes.empty()) {
        return http::to_response(http::make_problem(
            501, "This server was built without the viewer; /openapi.json has the document."));
    }
    http::Response response;
    response.headers.add("Content-Type", std::string(file.media_type));
    response.headers.add("Content-Security-Policy", kPolicy);
    response.headers.add("X-Content-Type-Options", "nosniff");
    // The page's address may hold a token.
    response.headers.add("Referrer-Policy", "no-referrer");
    response.headers.add("Cache-Control", "no-cache");
    response.body = std::string(file.bytes);
    return response;
}

}  // namespace

void add_docs(http::Router& router) {
    for (const char* path : {"/docs", "/docs/page.js", "/docs/viewer.js", "/docs/viewer.css"}) {
        http::Route route(
            http::Access::kOpen,
            "GET",
            path,
            [file = find_docs_file(path)](http::Request& /*request*/)
                -> boost::asio::awaitable<http::Response> { co_return answer(*file); });
        router.add(std::move(route).without_body());
    }
}

}  // namespace cellkeep::api
