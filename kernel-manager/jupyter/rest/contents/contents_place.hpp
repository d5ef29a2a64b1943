// SPDX-License-Identifier: Apache-2.0
//
// What a path of /api/contents means. Its first component is a session, by the id or the kernel id;
// the rest is a path in that session's workspace. The root is the list of the sessions that the
// principal may see. As in Jupyter Server, names that begin with a dot do not exist here.
// io_context thread only.
#pragma once

#include "kernel-manager/http/access/principal.hpp"
#include "kernel-manager/service/session_service.hpp"
#include "protocol/support/result.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::jupyter {

/// With a constructor, because g++ 12 miscompiles coroutines with temporaries of aggregates.
struct ContentsPlace {
    ContentsPlace() = default;
    ContentsPlace(std::string name, std::shared_ptr<session::Session> whose, std::string normal)
        : directory(std::move(name)), session(std::move(whose)), path(std::move(normal)) {}

    bool is_root() const { return session == nullptr; }
    /// The directory that stands for a whole session.
    bool is_session() const { return session != nullptr && path.empty(); }
    /// "" for the root; else "SESSION" or "SESSION/PATH", with the session as the client wrote it.
    std::string api_path() const { return path.empty() ? directory : directory + "/" + path; }
    /// The same session, another path.
    ContentsPlace at(std::string other) const { return {directory, session, std::move(other)}; }

    std::string directory;                      // the first component
    std::shared_ptr<session::Session> session;  // null: the root
    std::string path;                           // in the workspace; "" is the workspace itself
};

class ContentsPlaces {
 public:
    explicit ContentsPlaces(session::SessionService& backend) : backend_(backend) {}

    /// A path with or without slashes around it. kInvalidArgument if it is malformed or leaves the
    /// workspace; kNotFound if there is no such session, none that the principal may see, or a
    /// component begins with a dot. Does not look whether there is such a file.
    Result<ContentsPlace> find(std::string_view text, const http::Principal& principal) const;
    /// The session whose directory a path is in. Null if there is none that the principal may see.
    std::shared_ptr<session::Session> session_of(
        std::string_view text, const http::Principal& principal) const;

 private:
    session::SessionService& backend_;
};

/// The workspace of a place that is not the root. kNotFound if the session has ended.
Result<sandbox::Workspace> workspace_of(const ContentsPlace& place);
/// kConflict if an input of the operator's is mounted there or below it: no client may change it.
Status check_no_input(const ContentsPlace& place);
/// A file of the workspace, or the input that is mounted there.
Result<sandbox::Workspace::OpenedFile> open_contents(
    const ContentsPlace& place, const sandbox::Workspace& workspace);

}  // namespace cellkeep::jupyter
