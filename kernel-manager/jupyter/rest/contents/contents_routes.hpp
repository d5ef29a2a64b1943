// SPDX-License-Identifier: Apache-2.0
//
// /api/contents: the files of sessions' workspaces for clients of Jupyter Server's contents API
// (jupyter_server, services/api/api.yaml). The first component of a path is a session
// (contents_place.hpp). io_context thread only.
#pragma once

#include "kernel-manager/http/router.hpp"
#include "kernel-manager/jupyter/rest/client_activity.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_memory.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_order.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_place.hpp"
#include "kernel-manager/jupyter/rest/rest_kernels.hpp"

#include <boost/asio/awaitable.hpp>

namespace cellkeep::jupyter {

/// All of the parameters must outlive it, and it the listener.
class ContentsRoutes {
 public:
    ContentsRoutes(const ContentsPlaces& places, RestKernels& kernels)
        : places_(places), kernels_(kernels) {}
    void add_to(http::Router& router, ClientActivity& activity);

 private:
    using Answer = boost::asio::awaitable<http::Response>;

    /// Paths that end with /checkpoints or /checkpoints/ID go on to the checkpoints of a file.
    Answer get(http::Request& request);
    Answer post(http::Request& request);
    Answer put(http::Request& request);
    Answer patch(http::Request& request);
    Answer remove(http::Request& request);

    http::Response list_sessions(const http::Principal& principal, bool with_content) const;
    Answer get_file(ContentsPlace place, ContentsQuery query, http::Principal principal);
    Answer make_in_session(ContentsPlace place, ContentsOrder order, http::Principal principal);
    /// A directory that is made at the root is a new session.
    Answer make_session(ContentsOrder order, http::Principal principal);

    const ContentsPlaces& places_;
    RestKernels& kernels_;
    ContentsMemory memory_;
};

}  // namespace cellkeep::jupyter
