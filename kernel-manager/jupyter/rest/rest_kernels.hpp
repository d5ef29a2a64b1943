// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the Jupyter Server REST API. A kernel is a session of the session service, of any
// front end, known here by its kernel id. What a principal may not see (http/access/principal.hpp)
// does not exist for it. io_context thread only.
#pragma once

#include "kernel-manager/http/access/principal.hpp"
#include "kernel-manager/jupyter/rest/rest_body.hpp"
#include "kernel-manager/jupyter/rest/rest_config.hpp"
#include "kernel-manager/service/session_service.hpp"
#include "kernel-manager/session/session_info.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>
#include <vector>

namespace cellkeep::jupyter {

class RestKernels {
 public:
    using Started = Result<std::shared_ptr<session::Session>>;

    /// Both must outlive this.
    RestKernels(session::SessionService& backend, const RestConfig& config)
        : backend_(backend), config_(config) {}

    /// By kernel id. Returns null if there is none, or none that the principal may see.
    std::shared_ptr<session::Session> find(
        const std::string& id, const http::Principal& principal) const;
    std::vector<session::SessionInfo> visible(const http::Principal& principal) const;
    /// kNotFound: this server has no kernel of that name; the message is the name, the hint is
    /// why_not() of it.
    boost::asio::awaitable<Started> start(KernelOrder order, std::string owner);
    /// Why there is no kernel of that name and what to do, or "".
    std::string why_not(const std::string& kernel_name) const;

 private:
    void log_dropped(const ChosenEnvironment& environment) const;

    session::SessionService& backend_;
    const RestConfig& config_;
};

}  // namespace cellkeep::jupyter
