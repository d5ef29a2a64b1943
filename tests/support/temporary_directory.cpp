// SPDX-License-Identifier: Apache-2.0
#include "tests/support/temporary_directory.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>

namespace cellkeep::test {

TemporaryDirectory::TemporaryDirectory() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "cellkeep-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
        std::perror("mkdtemp");
        std::abort();
    }
    path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
    if (error) {
        (void)std::fprintf(stderr, "remove %s: %s\n", path_.c_str(), error.message().c_str());
        std::abort();
    }
}

std::size_t TemporaryDirectory::entry_count() const {
    const std::filesystem::directory_iterator entries(path_);
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

}  // namespace cellkeep::test
