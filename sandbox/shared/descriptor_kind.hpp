// SPDX-License-Identifier: Apache-2.0
//
// The two kinds of descriptors that a worker may be given. Used by the server and by pid 1: no
// allocation here.
#pragma once

namespace cellkeep::sandbox {

/// The writing end of a pipe, or the null device opened for writing.
bool is_output(int fd) noexcept;

/// The reading end of a pipe.
bool is_input(int fd) noexcept;

/// A process's side of a pseudo-terminal, both ways. Never a controller, which types into it.
bool is_terminal(int fd) noexcept;

/// A Unix stream or sequenced-packet socket that is connected to a peer without a name: not one
/// that could be connected elsewhere, and of no network.
bool is_socket_pair_end(int fd) noexcept;

}  // namespace cellkeep::sandbox
