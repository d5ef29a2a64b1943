// SPDX-License-Identifier: Apache-2.0
//
// A private directory as a workspace without a session.
#pragma once

#include "protocol/support/unique_fd.hpp"
#include "sandbox/workspace/workspace.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace cellkeep::test {

class TemporaryWorkspace {
 public:
    TemporaryWorkspace()
        : fd_(::open(directory_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
        REQUIRE(fd_.valid());
    }

    sandbox::Workspace workspace() const { return {fd_.get(), ::getuid(), ::getgid()}; }
    std::string path(const std::string& name) const { return directory_.file(name); }
    int fd() const { return fd_.get(); }

    void write(const std::string& name, const std::string& bytes) const {
        std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
        std::ofstream(path(name), std::ios::binary) << bytes;
    }
    void make_directory(const std::string& name) const {
        std::filesystem::create_directories(path(name));
    }

 private:
    TemporaryDirectory directory_;
    UniqueFd fd_;
};

}  // namespace cellkeep::test
