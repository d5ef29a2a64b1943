// SPDX-License-Identifier: Apache-2.0
//
// A server's state directory: private (0700), held by one server at a time (flock(2), so the kernel
// lets go when the server dies), with server.json saying where that server is and its token.
#pragma once

#include "kernel-manager/http/client.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <optional>
#include <string>

namespace cellkeep::cli {

/// What server.json says (mode 0600).
struct ServerRecord {
    std::string url;
    std::string token;
    std::string base_url = "/";      // of a Unix socket's URL, which cannot name it
    std::string certificate_sha256;  // of an https URL; http::ServerAddress
    long pid = 0;
    std::string started_at;
    std::string version;
};

/// $XDG_STATE_HOME/cellkeep, else $HOME/.local/state/cellkeep. kInvalidArgument if neither is set.
Result<std::string> default_state_dir();

/// Where `cellkeep mcp` keeps what it remembers from one start to the next: private, below
/// default_state_dir(), made if it is missing. Several of these programs may use it at once.
Result<std::string> provide_mcp_dir();

/// kNotFound if no server has written one there.
Result<ServerRecord> load_server_record(const std::string& state_dir);

/// How http::fetch() reaches that server. kProtocol if the record does not say it.
Result<http::ServerAddress> address_of(const ServerRecord& record);

/// The server whose state directory this is; nothing: the default one. As load_server_record() and
/// address_of().
Result<http::ServerAddress> find_server(const std::optional<std::string>& state_dir);

/// The directory, locked. The destructor removes server.json if publish() wrote it.
class StateDir {
 public:
    /// Makes the directory if it is missing. kConflict, naming the other server, if it is held;
    /// kPermissionDenied if it belongs to or is open to others.
    /// held: a lock that another program has passed on; it counts if it is this directory's.
    static Result<StateDir> lock(const std::string& path, UniqueFd held = {});
    StateDir(StateDir&& other) noexcept;
    StateDir& operator=(StateDir&&) = delete;
    StateDir(const StateDir&) = delete;
    StateDir& operator=(const StateDir&) = delete;
    ~StateDir();

    const std::string& path() const { return path_; }
    Status publish(const ServerRecord& record);
    /// The lock, for another program: server.json stays.
    UniqueFd pass_on();

 private:
    StateDir(std::string path, UniqueFd lock);
    std::string path_;
    UniqueFd lock_;
    bool published_ = false;
};

}  // namespace cellkeep::cli
