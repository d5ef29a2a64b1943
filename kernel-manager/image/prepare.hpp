// SPDX-License-Identifier: Apache-2.0
//
// The images a server runs its sessions from: found, or made when there are none.
#pragma once

#include "kernel-manager/image/environment_recipe.hpp"
#include "kernel-manager/image/image_recipe.hpp"
#include "kernel-manager/image/image_store.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/policy/policy.hpp"

#include <optional>
#include <string>
#include <vector>

namespace cellkeep::image {

/// Of what, on the host.
struct Sources {
    std::string kernel_program;
    std::string python_package_dir;
    std::string python_environment;
    std::vector<std::string> packages = default_packages();
    std::vector<Addition> environment_additions = {};
    std::vector<Addition> program_additions = {};
};

struct Prepared {
    ImageInUse environment;
    ImageInUse programs;

    /// For the sandbox's policy and report.
    std::vector<sandbox::PrivateImage> images() const;
};

/// Finds or makes both. With a digest: that environment and no other (kNotFound). Mounts, so call
/// it on the main thread before others exist (image_mount.hpp).
Result<Prepared> prepare(
    Store& store,
    const Sources& sources,
    const std::optional<std::string>& environment_digest,
    const Progress& progress);

/// As prepare(), but builds no image: kNotFound if there is none yet.
Result<Prepared> find_prepared(Store& store, const Sources& sources);

/// What there is of the environment without making an image of it, which takes minutes. That of the
/// programs is made if there is none, which takes seconds.
enum class Age {
    kCurrent,  // what the sources are now
    kAny,      // or the newest image of an older state of the same environment
};
/// Nothing if there is none, or it is damaged.
Result<std::optional<Prepared>> find_without_building(
    Store& store, const Sources& sources, Age age, const Progress& progress);

/// Makes the environment's image, though there may be one.
Result<ImageRecord> build_environment(
    Store& store, const Sources& sources, const Progress& progress);

}  // namespace cellkeep::image
