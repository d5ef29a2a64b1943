// SPDX-License-Identifier: Apache-2.0
//
// Builds packages from their source, each in a session of its own: a sandbox that reaches the named
// index and nothing else of the network, and sees the host's compiler in the private image,
// read-only. What runs there is a stranger's code. One per process: it makes sandboxes.
#pragma once

#include "kernel-manager/environments/source_package.hpp"
#include "kernel-manager/session/session.hpp"
#include "protocol/support/result.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::cli {

/// Of one build. Its files are in memory, too.
inline constexpr std::uint64_t kSourceMemoryMb = 4096;
inline constexpr std::uint64_t kSourceDiskMb = 2048;
inline constexpr std::uint32_t kSourceProcesses = 256;
inline constexpr double kSourceCpuCores = 2.0;
/// The end of what its installer says, in an error.
inline constexpr std::size_t kSourceTextBytesMax = 4096;

class SourceWorkshop {
 public:
    /// index: an address without a password, because builds see it. hosts: more that
    /// builds may reach, "HOST[:PORT]", where an index keeps its files at another place. Prepares
    /// the image that sessions see. kInvalidArgument; what make_service_config() fails with.
    static Result<std::unique_ptr<SourceWorkshop>> open(
        const std::string& index, const std::vector<std::string>& hosts);
    SourceWorkshop(const SourceWorkshop&) = delete;
    SourceWorkshop& operator=(const SourceWorkshop&) = delete;
    ~SourceWorkshop();

    /// SourceBuilder. kTimeout and kLimitExceeded at its bounds, kUnavailable with what its build
    /// says. Blocks.
    Result<std::string> build(const environments::SourceOrder& order);

 private:
    struct Parts;
    explicit SourceWorkshop(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;
};

/// Pure: what one build runs, as the JSON that the program inside reads.
std::string source_command(
    const environments::SourceOrder& order, const std::string& index, const std::string& trusted);

/// Copies the one wheel that the workspace holds into the directory; its file name. kUnavailable if
/// there is none or there are more; kLimitExceeded beyond bytes_max.
Result<std::string> take_wheel(
    const sandbox::Workspace& workspace, const std::string& directory, std::uint64_t bytes_max);

}  // namespace cellkeep::cli
