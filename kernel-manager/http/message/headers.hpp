// SPDX-License-Identifier: Apache-2.0
//
// HTTP header fields as a value: in order, names compared without case (RFC 9110, section 5.1).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::http {

/// ASCII only, no locale.
bool equals_ignoring_case(std::string_view left, std::string_view right);

class Headers {
 public:
    void add(std::string name, std::string value);
    /// Replaces every field of that name.
    void set(std::string name, std::string value);
    /// The first field's value, or null.
    const std::string* find(std::string_view name) const;
    /// The first field's value, or "".
    std::string_view get(std::string_view name) const;
    const std::vector<std::pair<std::string, std::string>>& all() const { return fields_; }

 private:
    std::vector<std::pair<std::string, std::string>> fields_;
};

}  // namespace cellkeep::http
