// SPDX-License-Identifier: Apache-2.0
//
// Links of alternatives (update-alternatives(1)) in a tree of packages: /usr/bin/convert to
// /etc/alternatives/convert to the program. Blocks: not for the event loop.
#pragma once

#include "kernel-manager/environments/debian/maintainer_script.hpp"
#include "kernel-manager/environments/debian/system_tree.hpp"
#include "protocol/support/result.hpp"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace cellkeep::environments {

/// Of each name the offer of the highest priority whose file is in the tree, the first of several.
/// Pure.
std::vector<AlternativeOffer> choose_alternatives(
    const std::vector<AlternativeOffer>& offers,
    const std::function<bool(const std::string& path)>& is_there);

/// Makes the links of what is chosen. image_files: absolute paths of what sessions have anyway; a
/// link that is among them, or whose name leads to one of them on this machine, stays theirs.
Status link_alternatives(
    const std::vector<AlternativeOffer>& offers,
    const std::set<std::string, std::less<>>& image_files,
    SystemTree& tree);

}  // namespace cellkeep::environments
