// SPDX-License-Identifier: Apache-2.0
//
// A fresh directory that is gone, with all in it, when the test case ends.
#pragma once

#include <cstddef>
#include <string>

namespace cellkeep::test {

class TemporaryDirectory {
 public:
    TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    ~TemporaryDirectory();
    const std::string& path() const { return path_; }
    std::string file(const std::string& name) const { return path_ + "/" + name; }
    /// How many entries it has, not counting those of its subdirectories.
    std::size_t entry_count() const;

 private:
    std::string path_;
};

}  // namespace cellkeep::test
