// SPDX-License-Identifier: Apache-2.0
//
// The names under which Jupyter front ends know this server's languages, and the kernelspecs they
// read. Notebooks carry the name of the kernel they were written with, nearly always "python3": so
// that is what the Python kernel is called here, and "python" is taken for it. Pure functions.
#pragma once

#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/service/session_service.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::jupyter {

inline constexpr const char* kDefaultKernelName = "python3";

/// "python3" for "python"; every other language is its own name, and so is "python3-geo", the
/// kernel of the environment "geo".
std::string kernel_name_of(const std::string& language);
/// The language behind a kernel name or a synonym of it, in any case of letters (as Jupyter's
/// KernelSpecManager looks names up); nothing if this server does not have it.
std::optional<std::string> language_of(
    std::string_view kernel_name, const std::vector<std::string>& languages);

/// A picture of this kernel's: of its folder, or Cellkeep's own for Python. kNotFound: it has none.
Result<std::string> load_logo(const session::KernelSpec& spec, std::string_view file);

/// {"name", "spec", "resources"}. The base URL starts and ends with a slash.
nlohmann::json kernelspec_model(const session::KernelSpec& spec, const std::string& base_url);

}  // namespace cellkeep::jupyter
