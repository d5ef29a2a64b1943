// SPDX-License-Identifier: Apache-2.0
//
// /api/terminals and /terminals/websocket: Jupyter Server's terminals, each a shell with a terminal
// in the sandbox of a session. A terminal belongs to the session whose directory (of /api/contents)
// its cwd is in; without one to the session that its principal used last, or to a fresh one. It
// ends with its shell or its session. io_context thread only.
#pragma once

#include "kernel-manager/http/router.hpp"
#include "kernel-manager/jupyter/rest/client_activity.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_place.hpp"
#include "kernel-manager/jupyter/rest/rest_kernels.hpp"
#include "kernel-manager/process/command.hpp"
#include "kernel-manager/service/session_service.hpp"

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace cellkeep::jupyter {

/// All of them must outlive it, and it the listener.
class TerminalRoutes {
 public:
    TerminalRoutes(
        session::SessionService& backend, RestKernels& kernels, const ContentsPlaces& places)
        : backend_(backend), kernels_(kernels), places_(places) {}
    void add_to(http::Router& router, ClientActivity& activity);

    /// The names of the terminals, for another program in the server's process. While their
    /// sessions are there.
    nlohmann::json pass_on();
    /// Of another program, when its sessions are there; others are none. Throws
    /// nlohmann::json::exception for what is not of that form.
    void go_on(const nlohmann::json& passed);

 private:
    using Answer = boost::asio::awaitable<http::Response>;

    struct Terminal {
        std::weak_ptr<session::Session> session;
        std::shared_ptr<process::Command> command;
    };
    /// A shell that lives, in a session that the principal may see.
    struct Found {
        std::shared_ptr<session::Session> session;
        std::shared_ptr<process::Command> command;
    };

    Answer list(http::Request& request);
    Answer create(http::Request& request);
    Answer get(http::Request& request);
    Answer remove(http::Request& request);
    Answer open(http::Request& request);

    /// Those whose shell has ended are none.
    void forget_ended();
    std::optional<Found> find(const std::string& name, const http::Principal& principal) const;
    std::shared_ptr<session::Session> last_used(const http::Principal& principal) const;
    std::string free_name() const;

    session::SessionService& backend_;
    RestKernels& kernels_;
    const ContentsPlaces& places_;
    std::map<std::string, Terminal> terminals_;  // no more than the sessions have
};

}  // namespace cellkeep::jupyter
