// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/environment_choice.hpp"

#include "kernel-manager/languages/named_environments.hpp"

namespace cellkeep::session {

void name_environment(const KernelCatalog& catalog, SessionOptions& options) {
    const auto chosen = choose_kernel(catalog, options.language, options.environment);
    if (chosen.has_value() && is_named(*chosen.value())) {
        options.language = chosen.value()->language;
        options.environment = chosen.value()->environment.name;
    }
}

}  // namespace cellkeep::session
