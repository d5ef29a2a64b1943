// SPDX-License-Identifier: Apache-2.0
//
// The session service's configuration as every command that runs sessions needs it.
#pragma once

#include "kernel-manager/service/service.hpp"
#include "protocol/support/result.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace cellkeep::cli {

/// What sessions see read-only: "auto", an image that is made if there is none; "host", the host's
/// own files (needs allow_degraded to have private_image); or an environment image's digest.
inline constexpr const char* kAutomaticImage = "auto";
/// The kernelspecs are where Jupyter looks for them.
inline constexpr const char* kAutomaticKernelspecs = "auto";

/// kInvalidArgument if a control name is unknown; kUnavailable if the installation is incomplete;
/// what image::prepare() fails with, unless private_image may be missing. May take a minute the
/// first time, and says so on stderr. Call it on the main thread before others exist
/// (image_mount.hpp).
/// kernels: directories of the operator's whose folders are languages (kernels/driver/README.md);
/// kInvalidArgument if there is no such directory. A language that lacks something is not offered;
/// the catalogue tells why. foreign_kernels: directories of Jupyter kernelspecs, likewise, or
/// kAutomaticKernelspecs.
Result<session::ServiceConfig> make_service_config(
    std::size_t sessions_max,
    const std::vector<std::string>& allow_degraded,
    const std::string& image = kAutomaticImage,
    const std::vector<std::string>& kernels = {},
    const std::vector<std::string>& foreign_kernels = {});

/// One line on stderr for each language that is not offered: why, and what gives it.
void print_not_offered(const session::KernelCatalog& catalog);

}  // namespace cellkeep::cli
