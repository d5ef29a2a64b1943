// SPDX-License-Identifier: Apache-2.0
//
// What a person may choose about the sandboxed kernel of a notebook: said to `cellkeep kernel`, or
// once and for all to `cellkeep kernelspec install`, which passes it on. Values only.
#pragma once

#include "kernel-manager/cli/serve/service_setup.hpp"
#include "kernel-manager/service/service.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "protocol/support/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::cli {

/// What code inside sees of the directory that the kernel was started in.
enum class ShareDirectory { kNone, kReadOnly };

/// Where it sees it.
inline constexpr const char* kSharedDirectoryPath = "/notebook";

struct NotebookOptions {
    std::string language = "python";
    // Nothing: the profile of session::notebook_limits.
    std::optional<double> cpu_cores;
    std::optional<std::uint64_t> memory_mb;
    std::optional<std::uint64_t> disk_mb;
    std::optional<std::uint32_t> processes;
    std::string share_cwd = "none";  // or "ro"
    std::vector<std::string> allow_degraded;
    std::vector<std::string> kernels = {};  // directories of languages
    std::string while_preparing = "wait";   // serve/service_setup.hpp
};

/// The flags that say these options again; those that are at their defaults are left out.
std::vector<std::string> to_arguments(const NotebookOptions& options);

/// kInvalidArgument unless text is "none" or "ro".
Result<ShareDirectory> parse_share_directory(const std::string& text);

/// Why this directory must not be shown inside whatever was asked for, or nothing: the root, a home
/// directory or what holds one has keys and passwords in it. Paths are absolute.
std::optional<std::string> objection_to_sharing(
    const std::string& directory, const std::string& home);

/// The configuration of a service for one notebook kernel. Says on stderr if the directory is not
/// shared although asked for. Fails as make_service_config.
Result<session::ServiceConfig> make_notebook_service(const NotebookOptions& options);
/// As make_notebook_service(), but makes no image of the environment (begin_service).
Result<ServiceStart> begin_notebook_service(const NotebookOptions& options);
session::SessionOptions make_notebook_session(
    const NotebookOptions& options, const session::LimitCeilings& ceilings);

}  // namespace cellkeep::cli
