// SPDX-License-Identifier: Apache-2.0
//
// What every session has before its first cell: the standard library's headers, and clang's options
// for them and for the cells. The headers are compiled once, when this program is built.
#pragma once

#include <clang/Frontend/CompilerInstance.h>
#include <llvm/Support/Error.h>
#include <memory>
#include <string>
#include <string_view>

namespace cellkeep::cpp {

/// The headers as C++ text. It declares nothing new if they were precompiled.
std::string_view preamble();

/// A compiler of cells. `headers` holds cellkeep/display.hpp; `precompiled` is a file that
/// precompile() (compiler.hpp) has made, or "" to begin with nothing.
llvm::Expected<std::unique_ptr<clang::CompilerInstance>> make_compiler(
    const std::string& headers, const std::string& precompiled);

}  // namespace cellkeep::cpp
