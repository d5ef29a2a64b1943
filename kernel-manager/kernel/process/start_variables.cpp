// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/process/start_variables.hpp"

#include <algorithm>
#include <array>

namespace cellkeep::session {

bool is_read_at_start(std::string_view name) {
    constexpr std::array<std::string_view, 21> kPrefixes = {
        "PYTHON",    "LD_",  "LC_",  "LANG",     "MALLOC_",  "GLIBC_",    "CELLKEEP_",
        "OPENBLAS_", "OMP_", "MKL_", "NUMEXPR_", "ARROW_",   "BLIS_",     "GOMP_",
        "GOTO_",     "KMP_", "NPY_", "NUMPY_",   "OPENSSL_", "JE_ARROW_", "MPL"};
    return std::any_of(kPrefixes.begin(), kPrefixes.end(), [name](std::string_view prefix) {
        return name.starts_with(prefix);
    });
}

bool has_start_variables(const std::map<std::string, std::string>& variables) {
    return std::any_of(variables.begin(), variables.end(), [](const auto& variable) {
        return is_read_at_start(variable.first);
    });
}

}  // namespace cellkeep::session
