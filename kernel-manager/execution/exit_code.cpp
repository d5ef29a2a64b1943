// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/exit_code.hpp"

namespace cellkeep::session {

std::optional<int> exit_code_of(const nlohmann::json& reply_metadata) {
    constexpr int kExitCodeMax = 255;
    const auto own = reply_metadata.find("cellkeep");
    if (own == reply_metadata.end() || !own->is_object()) {
        return std::nullopt;
    }
    const auto found = own->find("exit_code");
    if (found == own->end() || !found->is_number_integer() || *found < 0 || *found > kExitCodeMax) {
        return std::nullopt;
    }
    return found->get<int>();
}

}  // namespace cellkeep::session
