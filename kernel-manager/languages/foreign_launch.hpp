// SPDX-License-Identifier: Apache-2.0
//
// How Jupyter kernels of the host start inside a sandbox: through the bridge of kernels/foreign,
// which is a driver of kernels/driver.
#pragma once

#include "kernel-manager/image/prepare.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/languages/foreign_kernels.hpp"
#include "kernel-manager/languages/installation.hpp"
#include "protocol/support/result.hpp"

namespace cellkeep::session {

/// kUnavailable names what the bridge to them lacks.
Status check_foreign_bridge(const Installation& installation);

/// What the bridge and these kernels want of the images.
void add_foreign_sources(
    const ForeignKernels& kernels, const Installation& installation, image::Sources& sources);

/// How the kernel starts. python: of the same catalog. images: null, or what python is from;
/// kUnavailable names what of it they do not hold.
Result<KernelSpec> make_foreign_spec(
    const ForeignKernel& kernel,
    const Installation& installation,
    const KernelSpec& python,
    const image::Prepared* images);

}  // namespace cellkeep::session
