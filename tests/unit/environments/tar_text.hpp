// SPDX-License-Identifier: Apache-2.0
//
// Archives for tests, header by header, so that they can also be wrong.
#pragma once

#include "protocol/support/unique_fd.hpp"

#include <cstdint>
#include <string>

namespace cellkeep::test {

struct TarPart {
    std::string name;
    char type = '0';
    std::string contents = {};
    std::string link = {};
    unsigned mode = 0644;
    std::string prefix = {};
    bool gnu = true;
};

/// One entry: its header with the right sum, and its contents.
std::string tar_part(const TarPart& part);
/// What ends an archive.
std::string tar_end();
/// A file without a name that has these bytes.
UniqueFd file_with(const std::string& bytes);

}  // namespace cellkeep::test
