// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/session_lookup.hpp"

#include <utility>

namespace cellkeep::api {

SessionLookup::Session SessionLookup::find(const http::Request& request) const {
    return find(request.principal, request.capture("id"));
}

SessionLookup::Session SessionLookup::find(
    const http::Principal& principal, const std::string& id) const {
    auto session = backend_.find(id);
    if (session != nullptr && !http::may_see(principal, session->owner())) {
        return nullptr;
    }
    return session;
}

http::Handler SessionLookup::with_session(SessionHandler handler) const {
    return [this, handler = std::move(handler)](http::Request& request) {
        return serve(request, handler);
    };
}

boost::asio::awaitable<http::Response> SessionLookup::serve(
    http::Request& request, const SessionHandler& handler) const {
    Session session = find(request);
    if (session == nullptr) {
        http::Response gone = co_await history_.answer_session(request);
        co_return gone;
    }
    http::Response answer = co_await handler(request, std::move(session));
    co_return answer;
}

void count_as_use(const http::Request& request, session::Session& session) {
    if (http::may_change(request.principal)) {
        session.touch();
    }
}

}  // namespace cellkeep::api
