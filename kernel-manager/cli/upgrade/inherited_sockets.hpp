// SPDX-License-Identifier: Apache-2.0
//
// Sockets that listen before this program does: of the service manager (socket activation,
// sd_listen_fds(3)), or of the program whose place this one has taken. Owns them until a listener
// takes them; the rest is closed.
#pragma once

#include "kernel-manager/http/listener.hpp"
#include "protocol/support/result.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::cli {

inline constexpr std::size_t kInheritedSocketsMax = 16;
/// Connections that pass to another program, of all listeners together. The others are closed.
inline constexpr std::size_t kPassedConnectionsMax = 2048;

class InheritedSockets {
 public:
    struct Entry {
        std::string address;      // as the server's options name it (http::to_text)
        bool of_manager = false;  // it made it, and options need not name it
        http::InheritedSocket socket;
    };

    InheritedSockets() = default;
    /// kLimitExceeded beyond kInheritedSocketsMax, kConflict for an address that is there.
    Status add(Entry entry);
    /// The one of that address; an entry without a socket if there is none.
    Entry take(const std::string& address);
    const std::vector<Entry>& entries() const { return entries_; }
    /// Of the entry that was added as the at-th.
    http::InheritedSocket& socket(std::size_t at) { return entries_.at(at).socket; }
    /// A connection of that address. Without such an entry it is closed.
    void add_awaiting(const std::string& address, http::AwaitingConnection connection);
    /// Of those that the service manager made.
    std::vector<http::ListenAddress> addresses_of_manager() const;

 private:
    std::vector<Entry> entries_;
};

/// Those that the service manager passes to this process, and to no other: its variables are taken
/// out of the environment. None without a manager. kInvalidArgument if they are not what they
/// should be. Before the first thread.
Result<InheritedSockets> take_sockets_of_manager();

}  // namespace cellkeep::cli
