// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/compile/shadowing.hpp"

#include <algorithm>
#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/DeclContextInternals.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Frontend/CompilerInstance.h>

namespace cellkeep::cpp {

namespace {

clang::AbiTagAttr* tag_of(const clang::Decl* declaration) {
    return declaration == nullptr ? nullptr : declaration->getAttr<clang::AbiTagAttr>();
}

/// Of a template, what attributes are looked for on.
clang::NamedDecl* pattern_of(clang::NamedDecl* declaration) {
    auto* of_template = llvm::dyn_cast<clang::TemplateDecl>(declaration);
    clang::NamedDecl* pattern = of_template == nullptr ? nullptr : of_template->getTemplatedDecl();
    return pattern == nullptr ? declaration : pattern;
}

/// Takes it out of the table of the names in `place`, if it is there.
void forget(clang::DeclContext& place, clang::NamedDecl* declaration) {
    clang::StoredDeclsMap* table = place.getLookupPtr();
    if (table == nullptr) {
        return;
    }
    const auto entry = table->find(declaration->getDeclName());
    if (entry == table->end() ||
        !llvm::is_contained(entry->second.getLookupResult(), declaration)) {
        return;
    }
    entry->second.remove(declaration);
    if (entry->second.isNull()) {
        table->erase(entry);
    }
}

bool has_c_name(const clang::NamedDecl* declaration) {
    if (const auto* function = llvm::dyn_cast<clang::FunctionDecl>(declaration)) {
        return function->isExternC() || function->isMain();
    }
    const auto* variable = llvm::dyn_cast<clang::VarDecl>(declaration);
    return variable != nullptr && variable->isExternC();
}

}  // namespace

std::string Shadowing::file_of(clang::SourceLocation place) const {
    const clang::SourceManager& sources = compiler_.getSourceManager();
    const clang::PresumedLoc at = sources.getPresumedLoc(sources.getExpansionLoc(place));
    return at.isValid() ? at.getFilename() : "";
}

bool Shadowing::is_of_a_cell(const clang::Decl* declaration) const {
    return file_of(declaration->getLocation()).starts_with(kCellFilePrefix);
}

std::vector<clang::NamedDecl*> Shadowing::earlier(clang::DeclarationName name) const {
    std::vector<clang::NamedDecl*> found;
    std::vector<clang::DeclContext*> places(namespaces_.begin(), namespaces_.end());
    places.push_back(compiler_.getASTContext().getTranslationUnitDecl()->getPrimaryContext());
    for (clang::DeclContext* place : places) {
        for (clang::NamedDecl* declaration : place->lookup(name)) {
            if (is_of_a_cell(declaration)) {
                found.push_back(declaration);
            }
        }
    }
    return found;
}

std::vector<Shadowed> Shadowing::find(
    const std::vector<DiagnosticCollector::Redefinition>& taken, std::uint32_t text_begin) const {
    std::vector<Shadowed> found;
    for (const auto& [given, spelled, previous] : taken) {
        clang::DeclarationName name = given;
        if (name.isEmpty() && !spelled.empty()) {
            name = &compiler_.getASTContext().Idents.get(spelled);
        }
        if (name.isEmpty()) {
            continue;
        }
        const std::string file = previous.isValid() ? file_of(previous) : std::string();
        if (file.starts_with(kCellFilePrefix)) {
            // Not by the cell's number: executions that are not counted have that of another.
            const clang::SourceLocation at = compiler_.getSourceManager().getExpansionLoc(previous);
            if (at.getRawEncoding() < text_begin) {
                found.push_back({name.getAsOpaqueInteger(), previous.getRawEncoding()});
            }
        } else if (file.empty() || file == kNoFile) {
            // Of a class clang names no place when it takes the cells for one file read twice.
            found.push_back({name.getAsOpaqueInteger(), 0});
        }
    }
    return found;
}

bool Shadowing::hide(const std::vector<Shadowed>& shadowed) {
    bool any = false;
    for (const Shadowed& one : shadowed) {
        const auto name =
            clang::DeclarationName::getFromOpaqueInteger(static_cast<std::uintptr_t>(one.name));
        const auto place = clang::SourceLocation::getFromRawEncoding(one.place);
        for (clang::NamedDecl* declaration : earlier(name)) {
            const bool stands_there =
                place.isInvalid() ||
                std::any_of(
                    declaration->redecls_begin(),
                    declaration->redecls_end(),
                    [place](const clang::Decl* other) { return other->getLocation() == place; });
            if (stands_there) {
                hidden_names_.insert(name.getAsString());
                hide_one(declaration);
                any = true;
            }
        }
    }
    return any;
}

void Shadowing::hide_one(clang::NamedDecl* declaration) {
    clang::Sema& sema = compiler_.getSema();
    const clang::DeclarationName name = declaration->getDeclName();
    for (clang::Decl* one : declaration->redecls()) {
        auto* named = llvm::cast<clang::NamedDecl>(one);
        forget(*named->getDeclContext()->getRedeclContext()->getPrimaryContext(), named);
        // Where clang looks for another `extern "C"` of that name, whatever its scope.
        forget(*compiler_.getASTContext().getExternCContextDecl(), named);
        const auto chain = llvm::make_range(sema.IdResolver.begin(name), sema.IdResolver.end());
        if (llvm::is_contained(chain, named)) {
            sema.IdResolver.RemoveDecl(named);
        }
        if (sema.TUScope != nullptr) {
            sema.TUScope->RemoveDecl(named);
        }
    }
}

bool Shadowing::was_hidden(const clang::NamedDecl& declaration) const {
    // `auto [a, b]` has no name of its own: its symbol is made of those of its bindings.
    if (const auto* together = llvm::dyn_cast<clang::DecompositionDecl>(&declaration)) {
        return llvm::any_of(together->bindings(), [this](const clang::BindingDecl* binding) {
            return was_hidden(*binding);
        });
    }
    return !hidden_names_.empty() &&
           hidden_names_.contains(declaration.getDeclName().getAsString());
}

void Shadowing::name(clang::Decl* declaration, std::uint64_t serial) {
    if (auto* scope = llvm::dyn_cast<clang::NamespaceDecl>(declaration)) {
        if (is_of_a_cell(scope)) {
            namespaces_.insert(scope->getPrimaryContext());
        }
        for (clang::Decl* inner : scope->decls()) {
            name(inner, serial);
        }
        return;
    }
    if (auto* linkage = llvm::dyn_cast<clang::LinkageSpecDecl>(declaration)) {
        for (clang::Decl* inner : linkage->decls()) {
            name(inner, serial);
        }
        return;
    }
    if (auto* together = llvm::dyn_cast<clang::DecompositionDecl>(declaration)) {
        // What `get<0>` of a pair gives is in a variable of the binding's name.
        for (const clang::BindingDecl* binding : together->bindings()) {
            if (clang::VarDecl* holding = binding->getHoldingVar()) {
                name(holding, serial);
            }
        }
    }
    auto* named = llvm::dyn_cast<clang::NamedDecl>(declaration);
    if (named == nullptr || !was_hidden(*named) || !is_of_a_cell(named)) {
        return;
    }
    clang::ASTContext& context = compiler_.getASTContext();
    clang::NamedDecl* bearer = pattern_of(named);
    if (tag_of(bearer) != nullptr || bearer->hasAttr<clang::AsmLabelAttr>()) {
        return;
    }
    std::string symbol = "cell" + std::to_string(serial);
    if (has_c_name(bearer)) {
        symbol = named->getDeclName().getAsString() + "." + symbol;
        bearer->addAttr(clang::AsmLabelAttr::CreateImplicit(context, symbol, true));
        return;
    }
    // A definition of what an earlier cell declared is the same thing.
    if (const clang::Decl* previous = bearer->getPreviousDecl()) {
        if (clang::AbiTagAttr* tag = tag_of(previous)) {
            bearer->addAttr(tag->clone(context));
        }
        return;
    }
    llvm::StringRef tag(symbol);
    bearer->addAttr(clang::AbiTagAttr::CreateImplicit(context, &tag, 1));
}

}  // namespace cellkeep::cpp
