// SPDX-License-Identifier: Apache-2.0
//
// Cells may define again what earlier cells defined. clang's interpreter does not have that, so the
// earlier declaration is taken out of every table that names are looked up in: it lives on in the
// code that already uses it, and nothing finds it any more. The later one is given another symbol
// (an ABI tag, as libstdc++ gives its string), because the linker knows only names.
#pragma once

#include "kernels/cpp/compile/compile_failure.hpp"
#include "kernels/cpp/compile/diagnostics.hpp"

#include <clang/AST/Decl.h>
#include <clang/Sema/Sema.h>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace clang {
class CompilerInstance;
}

namespace cellkeep::cpp {

class Shadowing {
 public:
    /// `compiler` outlives this.
    explicit Shadowing(clang::CompilerInstance& compiler) : compiler_(compiler) {}

    /// What of earlier cells the redefinitions of a cell that did not compile collided with. Empty
    /// if a collision is with a header's, or within the cell, whose places begin with `text_begin`.
    /// For a process that was forked before the cell was read: in this one, clang has mixed the
    /// two.
    std::vector<Shadowed> find(
        const std::vector<DiagnosticCollector::Redefinition>& taken,
        std::uint32_t text_begin) const;

    /// Takes them out of sight. False if none of them is there.
    bool hide(const std::vector<Shadowed>& shadowed);

    /// Called before code is made of a declaration: gives it its symbol.
    void name(clang::Decl* declaration, std::uint64_t serial);

 private:
    std::vector<clang::NamedDecl*> earlier(clang::DeclarationName name) const;
    std::string file_of(clang::SourceLocation place) const;
    bool is_of_a_cell(const clang::Decl* declaration) const;
    bool was_hidden(const clang::NamedDecl& declaration) const;
    void hide_one(clang::NamedDecl* declaration);

    clang::CompilerInstance& compiler_;
    std::set<std::string> hidden_names_;
    std::set<clang::DeclContext*> namespaces_;  // of cells; primary contexts
};

}  // namespace cellkeep::cpp
