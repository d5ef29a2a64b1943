// SPDX-License-Identifier: Apache-2.0
//
// When each principal made its last request to the Jupyter Server REST API. io_context thread only.
#pragma once

#include "kernel-manager/http/access/principal.hpp"
#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/router.hpp"

#include <chrono>
#include <map>
#include <string>

namespace cellkeep::jupyter {

class ClientActivity {
 public:
    using Time = std::chrono::system_clock::time_point;

    /// Notes the time of the request, unless it says ?no_track_activity or its principal may only
    /// look.
    void note(const http::Request& request);
    /// The last request of the principals that this one may see; `otherwise` if there is none.
    Time last_seen_by(const http::Principal& principal, Time otherwise) const;
    /// The route with a handler that calls note() first. A GET or a DELETE reads no body. This must
    /// outlive the handler.
    http::Route counted(http::Route route);

 private:
    std::map<std::string, Time> last_requests_;  // by principal: one does not learn of another's
};

}  // namespace cellkeep::jupyter
