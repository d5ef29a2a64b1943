// SPDX-License-Identifier: Apache-2.0
//
// The Jupyter Server REST API below /api, and /kernelspecs, as HTTP routes over a SessionService:
// what JupyterLab's gateway client, @jupyterlab/services and agent frameworks ask for. Translates
// only; every decision about a kernel is the session service's. A kernel is a session of that
// service, whoever made it, known here by its kernel id. What a principal may not see
// (http/principal.hpp) does not exist for it (404). Errors are problems, which http::Application
// rewrites for Jupyter. Must outlive the listener; one io_context thread.
#pragma once

#include "kernel-manager/http/application.hpp"
#include "kernel-manager/jupyter/rest_body.hpp"
#include "kernel-manager/jupyter/rest_kernelspecs.hpp"
#include "kernel-manager/jupyter/rest_sessions.hpp"
#include "kernel-manager/service/session_service.hpp"
#include "kernel-manager/session/session_info.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/completion.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::jupyter {

struct RestConfig {
    /// Of addresses in bodies; starts and ends with a slash. (Location is http::Application's.)
    std::string base_url = "/";
    std::string default_kernel_name = kDefaultKernelName;
    /// Variables of a client that its kernel gets besides KERNEL_*.
    std::vector<std::string> allowed_envs;
    /// Of kernels that are started here, within the service's ceilings.
    session::SessionLimits limits;
    session::CullRules cull;
    /// Documents that have a kernel; tests set fewer.
    std::size_t sessions_max = limits::kJupyterSessionsMax;
    std::function<void(const std::string& line)> log;
};

class RestApi {
 public:
    /// Both must outlive this.
    RestApi(boost::asio::io_context& io, session::SessionService& backend, RestConfig config);
    RestApi(const RestApi&) = delete;
    RestApi& operator=(const RestApi&) = delete;
    ~RestApi() = default;

    /// The routes, and the prefixes whose errors are Jupyter's.
    void add_to(http::Application& application);

 private:
    using Answer = boost::asio::awaitable<http::Response>;
    using Started = Result<std::shared_ptr<session::Session>>;
    /// Documents, by owner and path, whose session is being made, and what waits for it.
    using PendingDocuments =
        std::map<std::pair<std::string, std::string>, std::shared_ptr<Completion<bool>>>;

    // rest_api.cpp
    Answer version(http::Request& request);
    Answer explain_login(http::Request& request);
    Answer status(http::Request& request);
    Answer me(http::Request& request);
    Answer list_kernelspecs(http::Request& request);
    Answer get_kernelspec(http::Request& request);
    Answer get_logo(http::Request& request);
    Answer list_terminals(http::Request& request);
    Answer create_terminal(http::Request& request);

    // rest_kernels.cpp
    Answer list_kernels(http::Request& request);
    Answer create_kernel(http::Request& request);
    Answer get_kernel(http::Request& request);
    Answer remove_kernel(http::Request& request);
    Answer interrupt_kernel(http::Request& request);
    Answer restart_kernel(http::Request& request);
    boost::asio::awaitable<Started> start_kernel(KernelOrder order, std::string owner);
    /// Why there is no kernel of that name and what to do, or "".
    std::string why_not(const std::string& kernel_name) const;
    /// By kernel id, if the principal may see it.
    std::shared_ptr<session::Session> find_kernel(
        const std::string& id, const http::Principal& principal) const;
    std::vector<session::SessionInfo> visible_kernels(const http::Principal& principal) const;

    // rest_documents.cpp
    Answer list_sessions(http::Request& request);
    Answer create_session(http::Request& request);
    Answer get_session(http::Request& request);
    Answer patch_session(http::Request& request);
    Answer remove_session(http::Request& request);
    RestSession* find_session(const http::Request& request);
    /// The kernel of a document, if it lives and the principal may see it: a kernel id that is free
    /// again may be somebody else's by now.
    std::shared_ptr<session::Session> kernel_of(
        const RestSession& session, const http::Principal& principal) const;
    boost::asio::awaitable<Started> kernel_for(
        nlohmann::json kernel, std::string directory, http::Principal principal);
    boost::asio::awaitable<http::Response> make_session(
        RestSession draft, nlohmann::json kernel, http::Principal principal);
    http::Response answer_session(
        int status, const RestSession& session, const http::Principal& principal) const;
    void forget_sessions_without_kernel();

    void add_open_routes(http::Router& router);
    void touch_activity(const http::Request& request);
    void log(const std::string& line) const;

    boost::asio::io_context& io_;
    session::SessionService& backend_;
    RestConfig config_;
    RestSessionTable sessions_;
    std::shared_ptr<PendingDocuments> pending_;  // a request may outlive the listener
    std::chrono::system_clock::time_point started_;
    /// By principal: when one asked is no other one's business.
    std::map<std::string, std::chrono::system_clock::time_point> last_requests_;
};

/// What a failure of the session service is to a Jupyter client: a full server is 403 "Resource
/// Limit", as Jupyter Kernel Gateway says it, and a bad request 400.
http::Response failure_response(const Error& error);
/// 501 with a "message" and a "short_message", which JupyterLab shows. The error's message is the
/// name, its hint why there is no such kernel and what to do, or empty.
http::Response unknown_kernel_name(const Error& error);

}  // namespace cellkeep::jupyter
