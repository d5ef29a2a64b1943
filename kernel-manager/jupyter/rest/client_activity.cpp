// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/client_activity.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::jupyter {

void ClientActivity::note(const http::Request& request) {
    if (!request.target.find_query("no_track_activity") && http::may_change(request.principal)) {
        last_requests_.insert_or_assign(request.principal.name, std::chrono::system_clock::now());
    }
}

ClientActivity::Time ClientActivity::last_seen_by(
    const http::Principal& principal, Time otherwise) const {
    Time last = otherwise;
    for (const auto& [name, time] : last_requests_) {
        if (http::may_see(principal, name)) {
            last = std::max(last, time);
        }
    }
    return last;
}

http::Route ClientActivity::counted(http::Route route) {
    route.handler = [this, handler = std::move(route.handler)](http::Request& request) {
        note(request);
        return handler(request);
    };
    const bool has_body = route.method != "GET" && route.method != "DELETE";
    return has_body ? std::move(route) : std::move(route).without_body();
}

}  // namespace cellkeep::jupyter
