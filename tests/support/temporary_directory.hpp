// SPDX-License-Identifier: Apache-2.0
//
// A fresh directory that is gone, with all in it, when the test case ends.
#pragma once

#include <string>

namespace cellkeep::test {

class TemporaryDirectory {
 public:
    TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    ~TemporaryDirectory();
    const std::string& path() const { return path_; }

 private:
    std::string path_;
};

}  // namespace cellkeep::test
