// SPDX-License-Identifier: Apache-2.0
//
// Lets a cell define again what an earlier cell defined, which clang's interpreter does not allow.
// The earlier declaration is removed from every table in which names are looked up. Code that
// already uses it goes on using it. The later definition gets another symbol, by an ABI tag as
// libstdc++ gives its string, because the linker knows only symbols.
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

    /// The declarations of earlier cells that a cell which did not compile declares again. Empty if
    /// a collision is with a header, or within the cell, whose places begin with `text_begin`. Hide
    /// them in a process that was forked before the cell was read: in this one, clang has merged
    /// the declarations.
    std::vector<Shadowed> find(
        const std::vector<DiagnosticCollector::Redefinition>& taken,
        std::uint32_t text_begin) const;

    /// Hides these declarations. Returns false if none of them exists.
    bool hide(const std::vector<Shadowed>& shadowed);

    /// Gives a declaration its symbol. Called before clang generates code for it.
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
