// SPDX-License-Identifier: Apache-2.0
//
// Environment variables that only count when a process starts: who asks for one of them gets an
// interpreter that starts with it, not one that is running already or goes on from a zygote.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace cellkeep::session {

/// Read by the dynamic linker, the C library, the interpreter, or libraries that a zygote has
/// loaded.
bool is_read_at_start(std::string_view name);

/// Whether one of them is.
bool has_start_variables(const std::map<std::string, std::string>& variables);

}  // namespace cellkeep::session
