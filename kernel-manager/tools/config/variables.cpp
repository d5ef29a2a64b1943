// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/config/variables.hpp"

namespace cellkeep::tools {

Result<std::string> replace_variables(
    std::string_view text,
    const std::function<std::optional<std::string>(const std::string& name)>& find) {
    constexpr std::string_view kOpen = "${";
    constexpr std::string_view kOtherwise = ":-";
    std::string replaced;
    while (true) {
        const std::size_t open = text.find(kOpen);
        replaced += text.substr(0, open);
        if (open == std::string_view::npos) {
            return replaced;
        }
        text.remove_prefix(open + kOpen.size());
        const std::size_t close = text.find('}');
        if (close == std::string_view::npos) {
            return Error(ErrorCode::kInvalidArgument, "has a ${ without its }");
        }
        const std::string_view inner = text.substr(0, close);
        text.remove_prefix(close + 1);
        const std::size_t otherwise = inner.find(kOtherwise);
        const std::string name(inner.substr(0, otherwise));
        if (const auto value = find(name)) {
            replaced += *value;
        } else if (otherwise != std::string_view::npos) {
            replaced += inner.substr(otherwise + kOtherwise.size());
        } else {
            return Error(
                ErrorCode::kInvalidArgument, "names the variable " + name + ", which is not set");
        }
    }
}

}  // namespace cellkeep::tools
