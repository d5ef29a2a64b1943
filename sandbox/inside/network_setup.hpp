// SPDX-License-Identifier: Apache-2.0
//
// A session's network namespace, from inside it: loopback, the listening socket, and the launcher's
// two dealings with namespaces that are made before they are needed. Part of the launcher. Rules of
// child_setup.hpp apply: errno results, no allocation.
#pragma once

#include "sandbox/shared/setup_step.hpp"

namespace cellkeep::sandbox {

int bring_up_loopback();

/// Bounds what the sockets of this process's network namespace may hold: what waits in a connection
/// that is not accepted yet is charged to no cgroup. Call it before the root changes: it needs the
/// host's /proc. It is no error if /proc/sys is read-only, is masked or lacks one of the bounds:
/// then missing is the errno, otherwise 0.
int bound_socket_memory(int proc_fd, int& missing);

/// The socket at 127.0.0.1:kProxyPort of the network namespace that this process is in.
int make_proxy_listener(int& listener_fd);

/// This process enters a network namespace of its own user namespace that is made for it: loopback
/// up, memory of sockets bounded, and, if listener_fd is not null, the proxy's socket. An errno.
int make_network_here(std::int32_t& missing, int* listener_fd, SetupStep& step);

/// Makes one network namespace with loopback up and the listening socket, and sends both to the
/// server. An ordinary user's belongs to a user namespace that is made with it. Ends with the
/// server. On failure, step says where.
int make_network(int control_fd, SetupStep& step);

/// Enters a namespace that make_network() made, before any namespace of the session is made: what
/// the session's user namespaces own does not include it. An ordinary user's process enters the
/// owning user namespace first, where its ids are the same as outside.
int enter_network(int network_fd, bool privileged);

}  // namespace cellkeep::sandbox
