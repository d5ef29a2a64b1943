// SPDX-License-Identifier: Apache-2.0
//
// The control private_image: whether what a session sees read-only comes from private copies
// (policy.images) or is the host's own. Looks at the paths themselves, by descriptor; it mounts
// nothing and reads no file. Called by the server for each sandbox; any thread.
#pragma once

#include "sandbox/policy/isolation.hpp"
#include "sandbox/policy/policy.hpp"

namespace cellkeep::sandbox {

/// Applied: every read-only path that exists, but those shared by name, lies in an image, on the
/// image's own file system and behind no symbolic link that leaves it. Degraded: some do not; the
/// detail names the first. Absent: there is no image.
Control describe_private_image(const Policy& policy);

}  // namespace cellkeep::sandbox
