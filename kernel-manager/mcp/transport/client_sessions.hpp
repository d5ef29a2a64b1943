// SPDX-License-Identifier: Apache-2.0
//
// The clients of the revisions that begin with initialize: which revision each speaks, and what of
// its requests is being answered. A session's id works for the principal that began it and for no
// other: for every other there is no such session. It names no sandbox: those have names of their
// own. io_context thread only.
#pragma once

#include "kernel-manager/mcp/call.hpp"
#include "kernel-manager/mcp/passed.hpp"
#include "kernel-manager/mcp/transport/calls.hpp"
#include "protocol/support/result.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace cellkeep::mcp {

struct ClientSession {
    std::string principal;
    std::string revision;
    std::shared_ptr<Client> client;
    CallsInFlight calls;
    std::uint64_t used = 0;
};

class ClientSessions {
 public:
    /// The new id; the client is closed with its session. Beyond kClientSessionsMax, or
    /// kPrincipalClientSessionsMax of one principal, the one that was not used for longest goes.
    /// kSystem: there is no randomness.
    Result<std::string> open(
        const std::string& principal, std::string revision, std::shared_ptr<Client> client);
    /// Counts as a use. Null if there is none, or it is another's.
    std::shared_ptr<ClientSession> find(const std::string& id, const std::string& principal);
    /// False as find() is null. What it runs goes on.
    bool close(const std::string& id, const std::string& principal);
    void close_all();
    std::size_t size() const { return sessions_.size(); }

    /// Of a client: what belongs to no request of its.
    using Describe = std::function<PassedClient(const Client&)>;
    using Restore = std::function<std::shared_ptr<Client>(const PassedClient&)>;
    /// For another program in the server's process: into passed, and from what one passed, before
    /// the first client.
    void pass_on(PassedClients& passed, const Describe& describe) const;
    void go_on(const PassedClients& passed, const Restore& restore);

 private:
    using Sessions = std::map<std::string, std::shared_ptr<ClientSession>>;

    void forget_oldest(const std::string* principal);
    void end(Sessions::iterator at);

    Sessions sessions_;
    std::map<std::string, std::size_t> counts_;  // by principal
    std::uint64_t uses_ = 0;
};

}  // namespace cellkeep::mcp
