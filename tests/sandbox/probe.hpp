// SPDX-License-Identifier: Apache-2.0
//
// What the hostile program can try (probe.cpp), by name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::probe {

using Arguments = std::vector<std::string>;

struct Primitive {
    std::string_view name;
    int (*attempt)(const Arguments&);  // 0, or an errno
};

std::span<const Primitive> primitives();

}  // namespace cellkeep::probe
