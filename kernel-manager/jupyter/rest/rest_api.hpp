// SPDX-License-Identifier: Apache-2.0
//
// The Jupyter Server REST API below /api, and /kernelspecs, as HTTP routes over a SessionService:
// what JupyterLab's gateway client, @jupyterlab/services and agent frameworks ask for. Translates
// only; every decision about a kernel is the session service's. What a principal may not see
// (http/access/principal.hpp) does not exist for it (404). Errors are problems, which
// http::Application rewrites for Jupyter. One io_context thread.
#pragma once

#include "kernel-manager/http/application.hpp"
#include "kernel-manager/jupyter/rest/client_activity.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_place.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_routes.hpp"
#include "kernel-manager/jupyter/rest/document_routes.hpp"
#include "kernel-manager/jupyter/rest/kernel_routes.hpp"
#include "kernel-manager/jupyter/rest/kernelspec_routes.hpp"
#include "kernel-manager/jupyter/rest/rest_config.hpp"
#include "kernel-manager/jupyter/rest/rest_kernels.hpp"
#include "kernel-manager/jupyter/rest/server_routes.hpp"
#include "kernel-manager/jupyter/rest/terminal_routes.hpp"
#include "kernel-manager/service/session_service.hpp"

#include <boost/asio/io_context.hpp>

namespace cellkeep::jupyter {

/// Owns what the routes share. Must outlive the listener.
class RestApi {
 public:
    /// Both must outlive this.
    RestApi(boost::asio::io_context& io, session::SessionService& backend, RestConfig config);
    RestApi(const RestApi&) = delete;
    RestApi& operator=(const RestApi&) = delete;
    ~RestApi() = default;

    /// The routes, and the prefixes whose errors are Jupyter's.
    void add_to(http::Application& application);
    /// Which documents use which kernels.
    RestSessionTable& documents() { return documents_.documents(); }
    TerminalRoutes& terminals() { return terminals_; }

 private:
    RestConfig config_;
    ClientActivity activity_;
    RestKernels kernels_;
    ServerRoutes server_;
    KernelspecRoutes kernelspec_routes_;
    KernelRoutes kernel_routes_;
    ContentsPlaces places_;
    ContentsRoutes contents_;
    DocumentRoutes documents_;
    TerminalRoutes terminals_;
};

}  // namespace cellkeep::jupyter
