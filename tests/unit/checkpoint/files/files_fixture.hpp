// SPDX-License-Identifier: Apache-2.0
//
// A workspace without a session, whose files are kept and put back.
#pragma once

#include "kernel-manager/checkpoint/files/file_capture.hpp"
#include "kernel-manager/checkpoint/files/file_restore.hpp"
#include "tests/support/temporary_workspace.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <set>
#include <sstream>
#include <string>

namespace cellkeep::checkpoint {

struct FilesFixture {
    /// The clock stands so late that every stamp is old, and believed.
    explicit FilesFixture(
        std::set<std::string> ignored = {},
        FileVersions::Clock clock = [] { return std::numeric_limits<std::int64_t>::max(); }) {
        versions = std::make_shared<FileVersions>(
            UniqueFd(::fcntl(files.fd(), F_DUPFD_CLOEXEC, 0)),
            ::getuid(),
            ::getgid(),
            space,
            std::move(ignored),
            clock);
    }

    test::TemporaryWorkspace files;
    test::TemporaryDirectory disk;
    std::shared_ptr<BlobSpace> space = std::make_shared<BlobSpace>(disk.path());
    std::shared_ptr<FileVersions> versions;

    using Kept = std::shared_ptr<const Manifest>;

    Kept capture() const {
        FileCapture capture(versions);
        for (;;) {
            const auto step = capture.advance();
            REQUIRE(step.has_value());
            if (step.value() == FileCapture::Step::kDone) {
                return std::make_shared<const Manifest>(capture.take());
            }
            if (step.value() == FileCapture::Step::kNoSpace) {
                capture.pass_over();
            }
        }
    }
    Restored restore(Kept target, Kept left = nullptr) const {
        FileRestore work(versions, std::move(target), std::move(left));
        while (work.advance()) {
        }
        return work.take();
    }
    std::string read(const std::string& name) const {
        std::ifstream file(files.path(name), std::ios::binary);
        std::stringstream text;
        text << file.rdbuf();
        return text.str();
    }
    bool exists(const std::string& name) const {
        return std::filesystem::symlink_status(files.path(name)).type() !=
               std::filesystem::file_type::not_found;
    }
};

}  // namespace cellkeep::checkpoint
