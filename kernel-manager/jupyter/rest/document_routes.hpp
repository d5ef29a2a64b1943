// SPDX-License-Identifier: Apache-2.0
//
// /api/sessions: clients' documents and the kernels that they use. A document in a session's
// directory of /api/contents (contents/contents_place.hpp) uses the kernel of that session, which
// was there before the document and stays when the document goes: the files are in it.
#pragma once

#include "kernel-manager/http/router.hpp"
#include "kernel-manager/jupyter/rest/client_activity.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_place.hpp"
#include "kernel-manager/jupyter/rest/document_body.hpp"
#include "kernel-manager/jupyter/rest/pending_documents.hpp"
#include "kernel-manager/jupyter/rest/rest_config.hpp"
#include "kernel-manager/jupyter/rest/rest_kernels.hpp"
#include "kernel-manager/jupyter/rest/rest_sessions.hpp"
#include "kernel-manager/service/session_service.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace cellkeep::jupyter {

/// Owns the table of documents. All of the parameters must outlive it, and it the listener.
class DocumentRoutes {
 public:
    DocumentRoutes(
        boost::asio::io_context& io,
        session::SessionService& backend,
        const RestConfig& config,
        RestKernels& kernels,
        const ContentsPlaces& places)
        : backend_(backend), config_(config), kernels_(kernels), places_(places), pending_(io) {}
    void add_to(http::Router& router, ClientActivity& activity);
    RestSessionTable& documents() { return documents_; }

 private:
    using Answer = boost::asio::awaitable<http::Response>;

    Answer list(http::Request& request);
    Answer create(http::Request& request);
    Answer get(http::Request& request);
    Answer patch(http::Request& request);
    Answer remove(http::Request& request);

    RestSession* find(const http::Request& request);
    /// The kernel of a document, if it lives and the principal may see it: a kernel id that is free
    /// again may belong to another principal by now.
    std::shared_ptr<session::Session> kernel_of(
        const std::string& kernel_id, const http::Principal& principal) const;
    boost::asio::awaitable<RestKernels::Started> kernel_for(
        nlohmann::json kernel, RestSession document, http::Principal principal);
    /// Whether the document is in the directory of the session whose kernel it uses.
    bool lives_in_its_session(const RestSession& document, const http::Principal& principal) const;
    Answer make(RestSession draft, nlohmann::json kernel, http::Principal principal);
    Answer change(DocumentOrder order, KernelChoice choice, http::Principal principal);
    /// Removes the kernel that a document had, unless another document uses it or the document was
    /// in that kernel's session.
    void release_kernel(const RestSession& former, const http::Principal& principal);
    http::Response answer(
        int status, const RestSession& document, const http::Principal& principal) const;
    void forget_documents_without_kernel();

    session::SessionService& backend_;
    const RestConfig& config_;
    RestKernels& kernels_;
    const ContentsPlaces& places_;
    RestSessionTable documents_;
    PendingDocuments pending_;
};

}  // namespace cellkeep::jupyter
