// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/file_digest.hpp"

#include "protocol/sha256.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

namespace cellkeep::image {

Result<std::string> sha256_of_file(int fd) {
    constexpr std::size_t kPieceBytes = 1ULL << 20U;
    std::vector<char> piece(kPieceBytes);
    protocol::Sha256 digest;
    off_t at = 0;
    while (true) {
        const ssize_t got = ::pread(fd, piece.data(), piece.size(), at);
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            return Error::from_errno(errno, "read(image)");
        }
        if (got == 0) {
            return digest.finish();
        }
        digest.update({piece.data(), static_cast<std::size_t>(got)});
        at += got;
    }
}

}  // namespace cellkeep::image
