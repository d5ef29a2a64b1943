// SPDX-License-Identifier: Apache-2.0
//
// The five sockets of one Jupyter kernel, bound and waiting: on fresh ports that a connection file
// is then written about, or exactly where a connection says. Bound before anybody serves them, so
// that a client's first request waits in them instead of being tried again. Owns the ipc files;
// knows neither sessions nor event loops. One thread.
#pragma once

#include "kernel-manager/jupyter/zmq/zmq_socket.hpp"
#include "protocol/connection_file.hpp"
#include "protocol/support/result.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::jupyter {

/// An ipc endpoint must be shorter than this: sockaddr_un has room for 108 bytes (unix(7)).
inline constexpr std::size_t kIpcEndpointBytesMax = 107;

/// Where sockets of tcp are.
inline constexpr const char* kLoopbackAddress = "127.0.0.1";

/// kInvalidArgument if the longest endpoint of this connection is one of ipc and too long.
Status check_endpoint_length(const protocol::ConnectionInfo& connection);

/// kInvalidArgument if two of its ports are the same, it has no key, or as above.
Status check_given(const protocol::ConnectionInfo& connection);

/// Files that are removed with this object.
class OwnedFiles {
 public:
    OwnedFiles() = default;
    OwnedFiles(OwnedFiles&& other) noexcept : paths_(std::exchange(other.paths_, {})) {}
    OwnedFiles& operator=(OwnedFiles&& other) noexcept;
    OwnedFiles(const OwnedFiles&) = delete;
    OwnedFiles& operator=(const OwnedFiles&) = delete;
    ~OwnedFiles() { remove(); }

    void add(std::string path) { paths_.push_back(std::move(path)); }
    void remove();
    /// They stay, for another program in this process.
    void leave() { paths_.clear(); }

 private:
    std::vector<std::string> paths_;
};

struct BoundSockets {
    /// Where the sockets are, and the key.
    protocol::ConnectionInfo connection;
    // Before the sockets, so that libzmq closes them first.
    OwnedFiles ipc_files;
    ZmqSocket shell;
    ZmqSocket iopub;
    ZmqSocket stdin_socket;
    ZmqSocket control;
    ZmqSocket heartbeat;
};

/// A fresh key and endpoints that are not bound yet: "<prefix>-1" to "-5". kInvalidArgument if
/// they would be too long.
Result<protocol::ConnectionInfo> name_ipc_sockets(const std::string& prefix);

/// A fresh key and fresh ports of the loopback address. high_water_mark: output messages per
/// subscriber.
Result<BoundSockets> bind_loopback_sockets(const ZmqContext& context, int high_water_mark);

/// Where the connection says, with its key. kInvalidArgument if two of its ports are the same or it
/// has no key: a kernel without one obeys every client that connects. kConflict, naming the
/// endpoint, if one is taken.
Result<BoundSockets> bind_given_sockets(
    const ZmqContext& context, protocol::ConnectionInfo connection, int high_water_mark);

}  // namespace cellkeep::jupyter
