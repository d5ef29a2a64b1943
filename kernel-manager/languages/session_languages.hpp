// SPDX-License-Identifier: Apache-2.0
//
// What a sandbox has to show so that several languages can run in it. Paths are fixed when a
// sandbox is made, so those of every language are there from the start: each one more costs a bind
// mount.
#pragma once

#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/languages/kernel_catalog.hpp"
#include "sandbox/policy/policy.hpp"

#include <memory>
#include <vector>

namespace cellkeep::session {

struct SessionLanguages {
    std::vector<sandbox::ReadOnlyPath> read_only;  // those of the main language first
    std::vector<sandbox::PrivateImage> images;     // where they come from
    /// The languages that can run there. Keeps the images from being removed.
    std::shared_ptr<const KernelCatalog> catalog;
};

/// Of sessions whose main language is `main`. A language of `offered` is left out, with all its
/// paths, if it wants something else than another one at the same place, or to cover it, or if the
/// paths would be more than kCatalogPathsMax; and so is every named environment but main's, whose
/// programs come first for all its languages. The session's catalogue knows why.
SessionLanguages combine_languages(const KernelCatalog& offered, const KernelSpec& main);

}  // namespace cellkeep::session
