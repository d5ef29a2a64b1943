// SPDX-License-Identifier: Apache-2.0
//
// Names looked up among what the cells and their headers have declared.
#pragma once

#include "kernels/cpp/text/cell_split.hpp"

#include <clang/AST/Decl.h>
#include <clang/Frontend/CompilerInstance.h>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::cpp {

/// All declarations, with overloads, that "std::sort" or "x" names at the top of a cell.
std::vector<clang::NamedDecl*> look_up(clang::CompilerInstance& compiler, std::string_view name);

/// A class, an alias, or a template of one is a type.
Meaning meaning_of(clang::CompilerInstance& compiler, std::string_view name);

/// The declaration as C++, with the comment above it if it is a documentation comment.
std::string describe(clang::CompilerInstance& compiler, const clang::NamedDecl& declaration);

/// The same of all declarations of a name; empty if there is none.
std::string describe_all(
    clang::CompilerInstance& compiler, const std::vector<clang::NamedDecl*>& declarations);

}  // namespace cellkeep::cpp
