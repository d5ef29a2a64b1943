// SPDX-License-Identifier: Apache-2.0
//
// A YAML document as a plain tree, without what can make a small file large or mean something else
// than it says: anchors, aliases, tags, keys that are there twice, a second document. Pure
// functions.
#pragma once

#include "protocol/support/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::environments {

/// Of lists and maps in each other.
inline constexpr std::size_t kYamlDepthMax = 8;

struct YamlNode {
    enum class Kind { kNothing, kText, kList, kMap };
    Kind kind = Kind::kNothing;
    std::size_t line = 1;
    std::string key = {};   // in its map
    std::string text = {};  // of kText
    std::vector<YamlNode> children = {};
};

/// kNothing for a text without a document. kInvalidArgument names the line.
Result<YamlNode> read_yaml(std::string_view text);

}  // namespace cellkeep::environments
