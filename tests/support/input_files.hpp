// SPDX-License-Identifier: Apache-2.0
//
// Files of a request, by what they are given as.
#pragma once

#include "kernel-manager/execution/execution.hpp"

#include <string>
#include <utility>

namespace cellkeep::session::test {

inline InputFile by_bytes(std::string path, std::string bytes) {
    InputFile file;
    file.path = std::move(path);
    file.bytes = std::move(bytes);
    return file;
}

inline InputFile by_name(std::string path, std::string from, std::string sha256 = {}) {
    InputFile file;
    file.path = std::move(path);
    file.from = std::move(from);
    file.sha256 = std::move(sha256);
    return file;
}

}  // namespace cellkeep::session::test
