// SPDX-License-Identifier: Apache-2.0
//
// E2B's snapshots and forks: a snapshot is a checkpoint of the sandbox's session, and a sandbox
// that goes on from one, as every fork does, is a branch of that session. io_context thread only.
#pragma once

#include "kernel-manager/e2b/control/sandbox_book.hpp"
#include "kernel-manager/e2b/control/snapshot_book.hpp"
#include "kernel-manager/e2b/control/snapshot_order.hpp"
#include "kernel-manager/e2b/wire/sandbox_tokens.hpp"
#include "kernel-manager/http/router.hpp"
#include "kernel-manager/service/session_service.hpp"

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace cellkeep::e2b {

class SnapshotRoutes {
 public:
    using Session = std::shared_ptr<session::Session>;

    /// All must outlive this, and this the router.
    SnapshotRoutes(
        session::SessionService& service,
        SandboxBook& book,
        SnapshotBook& snapshots,
        const SandboxTokens& tokens)
        : service_(service), book_(book), snapshots_(snapshots), tokens_(tokens) {}
    SnapshotRoutes(const SnapshotRoutes&) = delete;
    SnapshotRoutes& operator=(const SnapshotRoutes&) = delete;
    ~SnapshotRoutes() = default;

    void add_to(http::Router& router);
    /// A session that goes on from it and has this metadata. As SessionService::branch() and
    /// Session::update(); kNotFound: the snapshot has ended.
    boost::asio::awaitable<Result<Session>> start(Snapshot snapshot, nlohmann::json metadata);

 private:
    using Answer = boost::asio::awaitable<http::Response>;

    Answer create(http::Request& request);
    Answer list(http::Request& request);
    Answer remove(http::Request& request);
    Answer fork(http::Request& request);
    /// The "sandbox" or "error" of one fork.
    boost::asio::awaitable<nlohmann::json> fork_one(
        const http::Request& request,
        Session parent,
        std::string checkpoint,
        std::chrono::seconds timeout);

    session::SessionService& service_;
    SandboxBook& book_;
    SnapshotBook& snapshots_;
    const SandboxTokens& tokens_;
};

}  // namespace cellkeep::e2b
