// SPDX-License-Identifier: Apache-2.0
//
// A text as its lines and back, and what differs between two of them. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::cli {

/// Each with its line end; the last may have none. join_lines() gives the text back.
std::vector<std::string> split_lines(std::string_view text);
std::string join_lines(const std::vector<std::string>& lines);

/// The lines that go, with "-", and those that come, with "+", below "@@ line N @@". Lines that
/// stay are not shown: they may be secret. "" if nothing differs.
std::string show_difference(std::string_view before, std::string_view after);

}  // namespace cellkeep::cli
