// SPDX-License-Identifier: Apache-2.0
//
// A directory of plain files that stands for a cgroup: a test writes what the kernel would say, and
// reads what the code under test has written.
#pragma once

#include "protocol/support/syscall.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::sandbox {

class FakeCgroup {
 public:
    const std::string& path() const { return directory_.path(); }
    /// The file is there and has this text.
    void put(const std::string& name, const std::string& text) const {
        REQUIRE(write_file_atomically(directory_.file(name), text, 0600).has_value());
    }
    /// An empty file, into which one value can be written.
    void offer(const std::string& name) const { put(name, ""); }
    std::string get(const std::string& name) const {
        const auto text = read_file(directory_.file(name), 4096);
        REQUIRE(text.has_value());
        return text.value();
    }

 private:
    test::TemporaryDirectory directory_;
};

}  // namespace cellkeep::sandbox
