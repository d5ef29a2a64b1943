// SPDX-License-Identifier: Apache-2.0
//
// filesystem.Filesystem's watching of directories (spec/envd/filesystem/filesystem.proto): a stream
// (WatchDir), or a watcher whose events a client fetches (CreateWatcher). Both count as readers of
// Session::watch_files(). io_context thread only.
#pragma once

#include "kernel-manager/e2b/envd/open_streams.hpp"
#include "kernel-manager/e2b/wire/rpc.hpp"
#include "kernel-manager/e2b/wire/sandbox_door.hpp"
#include "kernel-manager/execution/watch/tree_watch.hpp"
#include "kernel-manager/http/router.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::e2b {

/// A watch of a directory, and the path before the names of its events.
struct WatchedDirectory {
    std::shared_ptr<session::TreeWatch> watch;
    std::string inside;
};

/// The events of E2B's that one of ours is: a renamed file has two, as of its directory's inotify,
/// and so has a new one, because programs for E2B wait for a file that they send to be written.
std::vector<nlohmann::json> filesystem_events(
    const session::FileEvent& event, const std::string& inside);

/// Watchers that clients have created, until they or the session end.
class Watchers {
 public:
    Result<nlohmann::json> create(const std::string& session_id, WatchedDirectory directory);
    /// What has happened since the last call. kNotFound.
    Result<nlohmann::json> take(const std::string& session_id, const std::string& watcher_id);
    Status remove(const std::string& session_id, const std::string& watcher_id);
    void forget(const std::string& session_id) { by_session_.erase(session_id); }
    bool any(const std::string& session_id) const;

 private:
    std::map<std::string, std::map<std::string, WatchedDirectory>> by_session_;
};

/// All must outlive the router.
void add_watch_rpcs(
    http::Router& router, const SandboxDoor& door, Watchers& watchers, OpenStreams& streams);

}  // namespace cellkeep::e2b
