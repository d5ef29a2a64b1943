// SPDX-License-Identifier: Apache-2.0
//
// A private directory for one test case, removed with all that is in it.
#pragma once

#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace cellkeep::test {

// For the linker another class than that of tests/support, which other files of a program may use.
inline namespace within_test_case {

class TemporaryDirectory {
 public:
    TemporaryDirectory() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "cellkeep-test-XXXXXX").string();
        REQUIRE(::mkdtemp(pattern.data()) != nullptr);
        path_ = pattern;
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    TemporaryDirectory(TemporaryDirectory&&) = delete;
    TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;
    ~TemporaryDirectory() {
        std::error_code ignored;  // Ignored: a leftover must not hide the test's own failure.
        std::filesystem::remove_all(path_, ignored);
    }

    std::string file(const std::string& name) const { return (path_ / name).string(); }
    const std::filesystem::path& path() const { return path_; }

    std::size_t entry_count() const {
        std::size_t count = 0;
        for (const auto& entry : std::filesystem::directory_iterator(path_)) {
            (void)entry;
            ++count;
        }
        return count;
    }

 private:
    std::filesystem::path path_;
};

}  // namespace within_test_case

}  // namespace cellkeep::test
