// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/transport/client_sessions.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "protocol/support/syscall.hpp"

#include <utility>

namespace cellkeep::mcp {

namespace {

/// Random bytes of an id: too many to find by trying.
constexpr std::size_t kIdRandomBytes = 16;

}  // namespace

Result<std::string> ClientSessions::open(
    const std::string& principal, std::string revision, std::shared_ptr<Client> client) {
    BOOST_OUTCOME_TRY(std::string id, secret_hex(kIdRandomBytes));
    if (counts_[principal] >= kPrincipalClientSessionsMax) {
        forget_oldest(&principal);
    } else if (sessions_.size() >= kClientSessionsMax) {
        forget_oldest(nullptr);
    }
    auto session = std::make_shared<ClientSession>();
    session->principal = principal;
    session->revision = std::move(revision);
    session->client = std::move(client);
    session->used = ++uses_;
    sessions_.emplace(id, std::move(session));
    ++counts_[principal];
    return id;
}

void ClientSessions::forget_oldest(const std::string* principal) {
    auto oldest = sessions_.end();
    for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
        const bool counts = principal == nullptr || at->second->principal == *principal;
        if (counts && (oldest == sessions_.end() || at->second->used < oldest->second->used)) {
            oldest = at;
        }
    }
    if (oldest != sessions_.end()) {
        end(oldest);
    }
}

void ClientSessions::end(Sessions::iterator at) {
    const std::shared_ptr<ClientSession> session = at->second;
    --counts_[session->principal];
    sessions_.erase(at);
    session->client->close();
}

void ClientSessions::close_all() {
    while (!sessions_.empty()) {
        end(sessions_.begin());
    }
}

std::shared_ptr<ClientSession> ClientSessions::find(
    const std::string& id, const std::string& principal) {
    const auto found = sessions_.find(id);
    if (found == sessions_.end() || found->second->principal != principal) {
        return nullptr;
    }
    found->second->used = ++uses_;
    return found->second;
}

void ClientSessions::pass_on(PassedClients& passed, const Describe& describe) const {
    passed.uses = uses_;
    for (const auto& [id, session] : sessions_) {
        PassedClient client = describe(*session->client);
        client.id = id;
        client.principal = session->principal;
        client.revision = session->revision;
        client.used = session->used;
        passed.clients.push_back(std::move(client));
    }
}

void ClientSessions::go_on(const PassedClients& passed, const Restore& restore) {
    uses_ = passed.uses;
    for (const PassedClient& client : passed.clients) {
        auto session = std::make_shared<ClientSession>();
        session->principal = client.principal;
        session->revision = client.revision;
        session->client = restore(client);
        session->used = client.used;
        if (sessions_.emplace(client.id, std::move(session)).second) {
            ++counts_[client.principal];
        }
    }
}

bool ClientSessions::close(const std::string& id, const std::string& principal) {
    if (find(id, principal) == nullptr) {
        return false;
    }
    end(sessions_.find(id));
    return true;
}

}  // namespace cellkeep::mcp
