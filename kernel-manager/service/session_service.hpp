// SPDX-License-Identifier: Apache-2.0
//
// What a front end that speaks HTTP needs of the session service, and nothing more, so that its
// routes can be tested without sandboxes. Service is the real one (service.hpp).
#pragma once

#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/limits/limits.hpp"
#include "kernel-manager/session/session.hpp"
#include "kernel-manager/session/session_options.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::session {

struct BranchOrder {
    std::string session;
    std::string checkpoint;
    std::optional<std::string> label;
    bool reseed = true;  // random states are made anew
};

class SessionService {
 public:
    SessionService() = default;
    SessionService(const SessionService&) = delete;
    SessionService& operator=(const SessionService&) = delete;
    virtual ~SessionService() = default;

    /// A sandbox with a kernel that has answered its first request, and the files in place.
    /// kLimitExceeded when sessions_max is reached ("too many sessions", counted from the moment of
    /// the request, so that no burst can pass it), kInvalidArgument names the field, kUnavailable
    /// names the missing control and its fix, kTimeout if the kernel was not ready in time,
    /// kConflict if kernel_id is taken.
    virtual boost::asio::awaitable<Result<std::shared_ptr<Session>>> create(
        SessionOptions options) = 0;
    /// A session that goes on from a checkpoint of another one, with memory, files and limits of
    /// its own. Errors as create()'s, and: kNotFound: no such session (in the field "session"), or
    /// no such checkpoint; kConflict: the session makes a checkpoint or has a network;
    /// kLimitExceeded: kBranchDepthMax; kSystem: the checkpoint cannot be forked.
    virtual boost::asio::awaitable<Result<std::shared_ptr<Session>>> branch(BranchOrder order);
    /// By session id or kernel id; null if there is none.
    virtual std::shared_ptr<Session> find(const std::string& id) const = 0;
    /// Oldest first.
    virtual std::vector<std::shared_ptr<Session>> list() const = 0;
    /// kNotFound. When it returns, the session has ended for every client. The service removes the
    /// rest of it from the host in the background, and frees its place afterwards.
    virtual Status remove(const std::string& id) = 0;
    /// After remove(), by session id: returns when nothing of the session is left on the host, or
    /// after two seconds (a guest can take long to die; the log says so). A service that leaves
    /// nothing behind returns at once.
    virtual boost::asio::awaitable<void> wait_until_gone(std::string id);
    virtual std::vector<std::string> languages() const = 0;
    /// Languages that this server could have and does not.
    virtual std::vector<NotOffered> not_offered() const { return {}; }
    /// Null if the language is not offered. Valid as long as the service.
    virtual const KernelSpec* find_spec(const std::string& language) const = 0;
    virtual LimitCeilings ceilings() const = 0;
    /// False while the zygotes and the first spare sessions are made: sessions are served, but
    /// start slower. True afterwards, also if making them failed; the log says so then.
    virtual bool ready() const = 0;
    /// True while what sessions run from is still being made: create() waits for it, at most
    /// kPreparingPatience, and then gives kUnavailable in the field "environment".
    virtual bool preparing() const { return false; }
};

}  // namespace cellkeep::session
