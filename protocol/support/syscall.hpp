// SPDX-License-Identifier: Apache-2.0
//
// System calls as Results. Each wrapper retries EINTR where that is safe, opens everything
// close-on-exec, and names operation and object in its error. Code that runs between clone and exec
// does not use this file: it may not allocate (see sandbox/inside/child_setup.hpp).
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep {

struct Pipe {
    UniqueFd read_end;
    UniqueFd write_end;
};

/// O_CLOEXEC plus the given flags (pipe2(2)).
Result<Pipe> make_pipe(int flags = 0);

/// AF_UNIX, SOCK_CLOEXEC, of the given type (SOCK_STREAM, SOCK_SEQPACKET …).
Result<std::pair<UniqueFd, UniqueFd>> make_socket_pair(int type);

Status set_nonblocking(int fd);

/// open(2) with O_CLOEXEC.
Result<UniqueFd> open_file(const std::string& path, int flags, mode_t mode = 0);

/// Hands on what is left of an open file, piece by piece, until take fails or it ends.
/// kLimitExceeded where it has more than bytes_max; the piece that goes beyond is not handed on.
Status read_in_pieces(
    int fd, std::uint64_t bytes_max, const std::function<Status(std::string_view)>& take);
/// The same as one text.
Result<std::string> read_to_end(int fd, std::size_t bytes_max);

/// The whole file, or kLimitExceeded if it is longer than bytes_max.
Result<std::string> read_file(const std::string& path, std::size_t bytes_max);

/// Creates or replaces path atomically for its readers: a temporary file in the same
/// directory, rename. Not flushed to the disk, so it may be empty after a power failure.
Status write_file_atomically(const std::string& path, std::string_view bytes, mode_t mode);

/// One write(2) to an existing file (cgroup and proc control files), without creating it.
Status write_control_file(const std::string& path, std::string_view value);

/// Writes all bytes to a blocking descriptor; SIGPIPE must be ignored by the process.
Status write_all(int fd, std::span<const std::byte> bytes);
Status write_all(int fd, std::string_view bytes);

/// Reads exactly bytes.size() bytes from a blocking descriptor; kProtocol if the peer ends early.
Status read_exactly(int fd, std::span<std::byte> bytes);

struct ReceivedMessage {
    std::size_t bytes = 0;      // 0 means the peer closed
    std::vector<UniqueFd> fds;  // in the order they were sent
};

/// How many descriptors one message may carry.
inline constexpr std::size_t kMessageFdsMax = 12;

/// One datagram with descriptors over an AF_UNIX socket (SCM_RIGHTS, unix(7)).
Status send_with_fds(int socket, std::span<const std::byte> bytes, std::span<const int> fds);
/// kUnavailable: the socket is non-blocking and has no datagram. kProtocol: it was truncated.
Result<ReceivedMessage> receive_with_fds(int socket, std::span<std::byte> buffer);

/// size random bytes (at most 256) as lower-case hexadecimal, for identifiers and names that cannot
/// be guessed. They are getrandom(2)'s, fetched a page at a time (RandomPool). Any thread.
Result<std::string> random_hex(std::size_t size);
/// The same for keys and tokens: asks getrandom(2) each time and keeps no copy.
Result<std::string> secret_hex(std::size_t size);

}  // namespace cellkeep
