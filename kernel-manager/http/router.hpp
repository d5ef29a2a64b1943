// SPDX-License-Identifier: Apache-2.0
//
// Method and path pattern to handler. A pattern is "/v1/sessions/{id}/files/{path...}": {name}
// takes one segment that is not empty, {name...} the rest, joined by slashes, at least one segment.
// Filled at start, read-only afterwards.
#pragma once

#include "kernel-manager/http/request.hpp"
#include "kernel-manager/http/response.hpp"
#include "protocol/limits.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::http {

using Handler = std::function<boost::asio::awaitable<Response>(Request&)>;

enum class Access { kToken, kOpen };
enum class BodyMode { kWhole, kStreamed };

struct Route {
    std::string method;
    std::string pattern;
    Handler handler;
    Access access = Access::kToken;
    BodyMode body_mode = BodyMode::kWhole;
    std::uint64_t body_bytes_max = limits::kHttpBodyBytesMax;
};

class Router {
 public:
    void add(Route route);

    struct Match {
        const Route* route = nullptr;  // null: 404 if allowed is empty, else 405
        std::map<std::string, std::string, std::less<>> captures;
        std::vector<std::string> allowed;  // the methods that the path knows
    };
    /// HEAD finds the GET route. The first route added wins.
    Match match(std::string_view method, const std::vector<std::string>& segments) const;

 private:
    struct Entry {
        Route route;
        std::vector<std::string> pattern;
    };
    std::vector<Entry> entries_;
};

/// "GET, HEAD, OPTIONS": the value of an Allow header.
std::string allow_value(const std::vector<std::string>& methods);

}  // namespace cellkeep::http
