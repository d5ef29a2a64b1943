// SPDX-License-Identifier: Apache-2.0
//
// Named environments as kernels: each is Python with other packages before the default ones, or
// another Python with packages of its own. And which kernel somebody means who names a language and
// an environment.
#pragma once

#include "kernel-manager/environments/environment_store.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/languages/kernel_catalog.hpp"
#include "protocol/support/result.hpp"

#include <string>

namespace cellkeep::session {

/// By which name it is offered: its language, or "python3-geo" for Python in the environment "geo".
std::string offered_by(const KernelSpec& spec);
/// Whether it runs in a named environment.
bool is_named(const KernelSpec& spec);

/// How the kernel of the environment starts. python: the default environment's kernel.
KernelSpec make_named_spec(
    const KernelSpec& python,
    const environments::NamedRecord& record,
    const image::ImageInUse& files);

/// The same of an environment of the store, whose files are in use from then on. Errors say why it
/// cannot be offered: those of EnvironmentStore::use() and check_system_packages(), and
/// kUnavailable for one of another Debian's Python.
Result<KernelSpec> find_named_spec(
    environments::EnvironmentStore& store,
    const KernelSpec& python,
    const environments::NamedEnvironment& environment);

/// Offers each environment of the store. One that cannot be is withheld, with the reason.
Status offer_named_environments(environments::EnvironmentStore& store, KernelCatalog& catalog);

/// The same of the default store, if there is one.
Status offer_named_environments(KernelCatalog& catalog);

/// The language in the environment. A kernel's name as the language means its environment, too.
/// kInvalidArgument names the field: language or environment. Never null.
Result<const KernelSpec*> choose_kernel(
    const KernelCatalog& catalog, const std::string& language, const std::string& environment);

}  // namespace cellkeep::session
