// SPDX-License-Identifier: Apache-2.0
//
// What a named environment has of Debian, in front of the files of the image that every session
// sees: one tree over /usr, and its own folders of /etc and /opt.
#pragma once

#include "kernel-manager/environments/named_record.hpp"
#include "kernel-manager/image/image_store.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "protocol/support/result.hpp"

#include <string>

namespace cellkeep::session {

/// kUnavailable, with what to do, if the packages are for another release than `release`, that of
/// this machine, or if the kernel sees the host's own files: then there is no tree to lie over. An
/// environment without such packages fits always.
Status check_system_packages(
    const KernelSpec& python, const environments::NamedRecord& record, const std::string& release);

/// What the operator should know of the environment's packages: they were chosen beside other
/// packages than those of the image that sessions run from. A distribution keeps what is built
/// against a release's packages working, so they are offered all the same. "": nothing.
std::string find_remark(const KernelSpec& python, const environments::NamedRecord& record);

/// Adds them to the kernel's paths and variables. Looks at the environment's folders.
void add_system_packages(
    const environments::NamedRecord& record, const image::ImageInUse& files, KernelSpec& spec);

}  // namespace cellkeep::session
