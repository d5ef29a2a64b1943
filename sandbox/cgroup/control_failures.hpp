// SPDX-License-Identifier: Apache-2.0
//
// Why controls of a sandbox could not be applied: the first failure of each, for the isolation
// report. Not thread-safe.
#pragma once

#include "protocol/support/result.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::sandbox {

class ControlFailures {
 public:
    /// Remembers the error, unless the control has failed before. Returns whether it worked.
    bool note(const std::string& control, const Status& status) {
        if (status.has_error()) {
            messages_.try_emplace(control, status.error().message());
        }
        return status.has_value();
    }
    /// The same; the value, if it worked.
    template <typename T>
    std::optional<T> take(const std::string& control, Result<T> result) {
        if (result.has_error()) {
            messages_.try_emplace(control, result.error().message());
            return std::nullopt;
        }
        return std::move(result).value();
    }
    /// nullopt if it has not failed.
    std::optional<std::string> find(const std::string& control) const {
        const auto found = messages_.find(control);
        return found == messages_.end() ? std::nullopt : std::optional(found->second);
    }

 private:
    std::map<std::string, std::string> messages_;
};

}  // namespace cellkeep::sandbox
