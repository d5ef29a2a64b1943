// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/compile/names.hpp"

#include "kernels/cpp/compile/diagnostics.hpp"
#include "kernels/cpp/compile/shadowed_names.hpp"

#include <algorithm>
#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/RawCommentList.h>
#include <clang/Lex/Preprocessor.h>
#include <clang/Sema/Lookup.h>
#include <clang/Sema/Sema.h>
#include <llvm/Support/raw_ostream.h>

namespace cellkeep::cpp {

namespace {

/// How many overloads are described.
constexpr std::size_t kDescribedMax = 12;

clang::DeclContext* scope_of(clang::NamedDecl* declaration) {
    clang::NamedDecl* under = declaration->getUnderlyingDecl();
    if (auto* space = llvm::dyn_cast<clang::NamespaceDecl>(under)) {
        return space;
    }
    if (auto* alias = llvm::dyn_cast<clang::NamespaceAliasDecl>(under)) {
        return alias->getNamespace();
    }
    if (auto* of_template = llvm::dyn_cast<clang::ClassTemplateDecl>(under)) {
        return of_template->getTemplatedDecl();
    }
    if (auto* alias = llvm::dyn_cast<clang::TypedefNameDecl>(under)) {
        return alias->getUnderlyingType()->getAsCXXRecordDecl();
    }
    return llvm::dyn_cast<clang::TagDecl>(under);
}

}  // namespace

std::vector<clang::NamedDecl*> look_up(clang::CompilerInstance& compiler, std::string_view name) {
    clang::Sema& sema = compiler.getSema();
    clang::ASTContext& context = compiler.getASTContext();
    std::vector<clang::NamedDecl*> found;
    bool first = true;
    while (!name.empty()) {
        const std::size_t colons = name.find("::");
        const std::string_view part = name.substr(0, colons);
        name = colons == std::string_view::npos ? std::string_view() : name.substr(colons + 2);
        if (part.empty()) {
            continue;  // "::x"
        }
        clang::LookupResult result(
            sema,
            clang::DeclarationName(&context.Idents.get(llvm::StringRef(part))),
            clang::SourceLocation(),
            clang::Sema::LookupAnyName);
        result.suppressDiagnostics();
        if (first) {
            sema.LookupName(result, sema.TUScope);
        } else {
            clang::DeclContext* scope = found.empty() ? nullptr : scope_of(found.front());
            if (scope == nullptr) {
                return {};
            }
            sema.LookupQualifiedName(result, scope);
        }
        first = false;
        found.assign(result.begin(), result.end());
        if (found.empty()) {
            return {};
        }
    }
    return found;
}

Meaning meaning_of(clang::CompilerInstance& compiler, std::string_view name) {
    const std::vector<clang::NamedDecl*> found = look_up(compiler, name);
    if (found.empty()) {
        const clang::IdentifierInfo& word = compiler.getASTContext().Idents.get(name);
        const bool macro = compiler.getPreprocessor().getMacroInfo(&word) != nullptr;
        return macro ? Meaning::kValue : Meaning::kUnknown;
    }
    const bool type = std::any_of(found.begin(), found.end(), [](clang::NamedDecl* declaration) {
        const clang::NamedDecl* under = declaration->getUnderlyingDecl();
        return llvm::isa<clang::TypeDecl>(under) || llvm::isa<clang::ClassTemplateDecl>(under) ||
               llvm::isa<clang::TypeAliasTemplateDecl>(under);
    });
    return type ? Meaning::kType : Meaning::kValue;
}

std::string describe(clang::CompilerInstance& compiler, const clang::NamedDecl& declaration) {
    clang::ASTContext& context = compiler.getASTContext();
    const clang::SourceManager& sources = compiler.getSourceManager();
    clang::PrintingPolicy policy(context.getLangOpts());
    policy.SuppressScope = false;
    policy.PolishForDeclaration = true;
    // Of a class of a header only its head is shown, of a class of a cell its body too.
    policy.TerseOutput =
        !sources.getPresumedLoc(declaration.getLocation()).isValid() ||
        !llvm::StringRef(sources.getPresumedLoc(declaration.getLocation()).getFilename())
             .starts_with(kCellFilePrefix) ||
        llvm::isa<clang::FunctionDecl>(declaration) ||
        llvm::isa<clang::FunctionTemplateDecl>(declaration);
    std::string text;
    llvm::raw_string_ostream out(text);
    declaration.print(out, policy);
    if (const auto* variable = llvm::dyn_cast<clang::VarDecl>(&declaration)) {
        out << "\ntype: " << variable->getType().getAsString(policy);
    }
    if (const clang::RawComment* comment = context.getRawCommentForAnyRedecl(&declaration)) {
        out << "\n\n" << comment->getFormattedText(sources, compiler.getDiagnostics());
    }
    return without_tags(out.str());
}

std::string describe_all(
    clang::CompilerInstance& compiler, const std::vector<clang::NamedDecl*>& declarations) {
    std::string text;
    const std::size_t described = std::min(declarations.size(), kDescribedMax);
    for (std::size_t index = 0; index < described; ++index) {
        text += (index == 0 ? "" : "\n") +
                describe(compiler, *declarations[index]->getUnderlyingDecl());
    }
    if (declarations.size() > described) {
        text += "\nand " + std::to_string(declarations.size() - described) + " more";
    }
    return text;
}

}  // namespace cellkeep::cpp
