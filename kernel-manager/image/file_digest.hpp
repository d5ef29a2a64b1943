// SPDX-License-Identifier: Apache-2.0
//
// The SHA-256 of a file, read in pieces. It reads the whole file: not for the event loop.
#pragma once

#include "protocol/support/result.hpp"

#include <string>

namespace cellkeep::image {

/// Lower-case hexadecimal, of the whole file from its beginning; the descriptor's own position
/// stays. Errors are those of pread(2).
Result<std::string> sha256_of_file(int fd);

}  // namespace cellkeep::image
