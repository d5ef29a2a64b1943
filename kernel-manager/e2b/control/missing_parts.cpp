// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/control/missing_parts.hpp"

#include "kernel-manager/http/message/problem.hpp"

#include <boost/asio/awaitable.hpp>

#include <array>
#include <string_view>

namespace cellkeep::e2b {

namespace {

struct MissingPart {
    const char* method;
    const char* pattern;
    const char* detail;
};

constexpr const char* kNoVolumes = "This server has no volumes. Write the files into the sandbox.";
constexpr const char* kNoSecrets =
    "This server keeps no secrets for this API. The operator names them: cellkeep serve --secret.";

constexpr std::array kMissing = {
    MissingPart{"POST", "/templates", kNoTemplates},
    MissingPart{"POST", "/v2/templates", kNoTemplates},
    MissingPart{"POST", "/v3/templates", kNoTemplates},
    MissingPart{"GET", "/templates/{name}", kNoTemplates},
    MissingPart{"PATCH", "/templates/{name}", kNoTemplates},
    MissingPart{"POST", "/templates/{name}", kNoTemplates},
    MissingPart{"GET", "/templates/{name}/{rest...}", kNoTemplates},
    MissingPart{"POST", "/templates/{name}/{rest...}", kNoTemplates},
    MissingPart{"POST", "/v2/templates/{name}/{rest...}", kNoTemplates},
    MissingPart{"GET", "/volumes", kNoVolumes},
    MissingPart{"POST", "/volumes", kNoVolumes},
    MissingPart{"GET", "/volumes/{rest...}", kNoVolumes},
    MissingPart{"DELETE", "/volumes/{rest...}", kNoVolumes},
    MissingPart{"GET", "/secrets", kNoSecrets},
    MissingPart{"POST", "/secrets", kNoSecrets},
    MissingPart{"DELETE", "/secrets/{rest...}", kNoSecrets},
};

}  // namespace

void add_missing_parts(http::Router& router) {
    for (const MissingPart& part : kMissing) {
        const bool reads = std::string_view(part.method) == "GET";
        router.add(
            {reads ? http::Access::kRead : http::Access::kChange,
             part.method,
             part.pattern,
             [detail = part.detail](
                 http::Request& /*request*/) -> boost::asio::awaitable<http::Response> {
                 co_return http::to_response(http::make_problem(501, detail));
             }});
    }
}

}  // namespace cellkeep::e2b
