// SPDX-License-Identifier: Apache-2.0
//
// The sessions that clients name. A name belongs to a principal, and its session is made when it is
// first used; a session id names a session of any front end that the principal may see. Remembers
// which interpreter each session had at the last call, so that the next answer says whether its
// variables were lost since. io_context thread only.
#pragma once

#include "kernel-manager/http/access/principal.hpp"
#include "kernel-manager/mcp/tools/tool_answer.hpp"
#include "kernel-manager/service/session_service.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::mcp {

/// 1 to kSessionNameBytesMax letters, digits and "._-". "ses_…" is an id.
bool is_session_name(std::string_view name);

/// What a session is made with at the first use of its name.
struct NewSession {
    std::string language;   // "": python
    bool branches = false;  // it can be branched
};

class SessionNames {
 public:
    using Session = std::shared_ptr<session::Session>;

    /// The service must outlive this.
    SessionNames(boost::asio::io_context& io, session::SessionService& service)
        : io_(io), service_(service) {}
    SessionNames(const SessionNames&) = delete;
    SessionNames& operator=(const SessionNames&) = delete;
    ~SessionNames() = default;

    struct Opened {
        Session session;
        bool created = false;
        /// An earlier session of this name has ended: its variables and files are gone.
        bool replaced = false;
    };
    /// The session of that name, or a new one as it is wanted, whose runs may take as long as the
    /// server lets any take. Two first uses at once get the same session. kInvalidArgument: it is
    /// no name; kNotFound: there is no session of that id; else as SessionService::create().
    boost::asio::awaitable<Result<Opened>> open(
        http::Principal principal, std::string name, NewSession wanted);
    /// Whether a new session can have the name. kInvalidArgument: it is no name, or an id;
    /// kConflict: a session of that name lives or is made.
    Status check_free(const http::Principal& principal, const std::string& name) const;
    /// A branch, under a name. As check_free() and SessionService::branch().
    boost::asio::awaitable<Result<Session>> branch(
        http::Principal principal, std::string name, session::BranchOrder order);
    /// kNotFound: nothing of that name lives, or the principal may not see it.
    Result<Session> find(const http::Principal& principal, const std::string& name) const;
    /// Forgets the name and ends the session. As find().
    Status close(const http::Principal& principal, const std::string& name);
    /// Those that the principal may see, with their names; the name is the id for one that has no
    /// name of this principal.
    std::vector<std::pair<std::string, Session>> list(const http::Principal& principal) const;

    /// The names of sessions that live, and what their clients have been told: for another program
    /// in the server's process, and from one. Before the first call.
    nlohmann::json pass_on() const;
    /// Throws nlohmann::json::exception for what is not of that form.
    void go_on(const nlohmann::json& passed);

    /// What the variables of this language have been through since the last look. The first look
    /// at a session finds them kept.
    State look(const session::Session& session, const std::string& language);
    /// The client has been told of a loss whose fresh interpreter is still to come: the next look
    /// does not tell it again.
    void expect_restart(const session::Session& session, const std::string& language);

 private:
    using Key = std::pair<std::string, std::string>;  // principal, name
    using Outcome = Completion<Result<Session>>;
    struct Entry {
        std::string id;                     // of the session; empty while it is made
        std::shared_ptr<Outcome> creation;  // null: it has been made
        std::uint64_t used = 0;
    };

    boost::asio::awaitable<Result<Opened>> create(Key key, NewSession wanted, bool replaced);
    /// Others who use the name from now on wait for what becomes of it.
    std::shared_ptr<Outcome> begin_creation(const Key& key);
    /// replaced: an earlier session of this name is missed as long as none has taken its place.
    void end_creation(const Key& key, const Result<Session>& made, bool replaced);
    Session find_by_id(const http::Principal& principal, const std::string& id) const;
    void forget_old(const std::string& owner);
    void forget_ended();

    boost::asio::io_context& io_;
    session::SessionService& service_;
    std::map<Key, Entry> names_;
    std::uint64_t uses_ = 0;
    /// By session id: how often each language's interpreter had been replaced.
    std::map<std::string, std::map<std::string, std::uint64_t>> restarts_;
};

}  // namespace cellkeep::mcp
