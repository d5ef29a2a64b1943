// SPDX-License-Identifier: Apache-2.0
//
// Method and path pattern to handler. A pattern is "/v1/sessions/{id}/files/{path...}": {name}
// takes one segment that is not empty, {name...} the rest, joined by slashes, at least one segment.
// Filled at start, read-only afterwards.
#pragma once

#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/message/response.hpp"
#include "protocol/limits.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::http {

using Handler = std::function<boost::asio::awaitable<Response>(Request&)>;

/// Which principals may use a route. Which sessions they see is decided by access/principal.hpp.
enum class Access {
    kOpen,    // every client, without a token
    kRead,    // every principal: it reads, and nothing changes by it
    kChange,  // principals that may change something: it changes, runs or may keep something alive
};
enum class BodyMode { kWhole, kStreamed };

/// Each route names its access: there is no default.
struct Route {
    Route(Access who, std::string verb, std::string path, Handler handle)
        : access(who),
          method(std::move(verb)),
          pattern(std::move(path)),
          handler(std::move(handle)) {}
    /// The same of a route that reads no body: only a short one is let through, and ignored.
    Route without_body() && {
        body_bytes_max = limits::kHttpIgnoredBodyBytesMax;
        return std::move(*this);
    }

    Access access;
    std::string method;
    std::string pattern;
    Handler handler;
    BodyMode body_mode = BodyMode::kWhole;
    std::uint64_t body_bytes_max = limits::kHttpBodyBytesMax;
    /// Of a streamed body that may stay open for as long as it likes: how long nothing of it may
    /// come. 0: the whole body has its time (limits::kHttpBodyTimeout).
    std::chrono::milliseconds body_silence_max{0};
};

class Router {
 public:
    /// A route of a method other than GET must be Access::kChange. A slash at the end of the
    /// pattern is a part of the path.
    void add(Route route);
    /// What was added, in that order. Valid until the next add.
    std::vector<const Route*> routes() const;

    struct Match {
        const Route* route = nullptr;  // null: 404 if allowed is empty, else 405
        std::map<std::string, std::string, std::less<>> captures;
        std::vector<std::string> allowed;  // the methods that the path knows
    };
    /// HEAD finds the GET route. A path that patterns without {name...} know is theirs alone,
    /// whatever its method. Of several routes the first that was added wins.
    Match match(std::string_view method, const std::vector<std::string>& segments) const;

 private:
    struct Entry {
        Route route;
        std::vector<std::string> pattern;
        bool rest = false;  // it ends in {name...}
    };
    /// rest: of the patterns with {name...}, or of the others.
    Match match_entries(
        std::string_view method, const std::vector<std::string>& segments, bool rest) const;

    std::vector<Entry> entries_;
};

/// "GET, HEAD, OPTIONS": the value of an Allow header.
std::string allow_value(const std::vector<std::string>& methods);

}  // namespace cellkeep::http
