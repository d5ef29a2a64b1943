// SPDX-License-Identifier: Apache-2.0
//
// The pictures that Jupyter shows beside a kernel, as bytes of this program; their sources are in
// kernels/python/kernelspec.
#pragma once

#include <array>
#include <string_view>

namespace cellkeep::jupyter {

/// The file names are those that Jupyter looks for: the stem is the resource's name.
struct Logo {
    std::string_view file;
    std::string_view content_type;
    std::string_view bytes;  // of static storage
};

const std::array<Logo, 3>& logos();
/// Null if there is no such file.
const Logo* find_logo(std::string_view file);

}  // namespace cellkeep::jupyter
