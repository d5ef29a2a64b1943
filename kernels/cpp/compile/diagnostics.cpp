// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/compile/diagnostics.hpp"

#include <algorithm>
#include <array>
#include <clang/AST/Decl.h>
#include <clang/Basic/DiagnosticLex.h>
#include <clang/Basic/DiagnosticSema.h>
#include <clang/Basic/SourceManager.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/ADT/StringExtras.h>
#include <utility>

namespace cellkeep::cpp {

namespace {

constexpr std::size_t kLineBytesMax = 400;

/// Errors that mean: this name is already taken. By an earlier cell's, it makes way.
constexpr std::array kTaken{
    clang::diag::err_redefinition,
    clang::diag::err_redefinition_different_kind,
    clang::diag::err_redefinition_different_type,
    clang::diag::err_redefinition_different_typedef,
    clang::diag::err_redefinition_different_concept,
    clang::diag::err_redefinition_different_namespace_alias,
    clang::diag::err_redefinition_of_enumerator,
    clang::diag::err_ovl_diff_return_type,
    clang::diag::err_conflicting_types,  // of main, which has no overloads, and of extern "C"
    clang::diag::err_param_default_argument_redefinition,
    clang::diag::err_template_param_default_arg_redefinition,
    clang::diag::err_template_param_different_kind,
    clang::diag::err_template_param_list_different_arity,
    clang::diag::err_static_non_static,
    clang::diag::err_non_static_static,
    clang::diag::err_constexpr_redecl_mismatch,
    clang::diag::err_mismatched_exception_spec,
    clang::diag::err_missing_exception_specification,
    clang::diag::err_use_with_wrong_tag};

bool is_continuation(char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
}

/// The line of the source, and how many bytes and code points of it lie before `at`.
struct Line {
    std::string text;
    std::size_t bytes_before = 0;
    unsigned points_before = 0;
};

Line line_of(const clang::SourceManager& sources, clang::SourceLocation at) {
    bool invalid = false;
    const auto [file, offset] = sources.getDecomposedLoc(at);
    const llvm::StringRef buffer = sources.getBufferData(file, &invalid);
    if (invalid || offset > buffer.size()) {
        return {};
    }
    const std::size_t before = buffer.substr(0, offset).rfind('\n');
    const std::size_t begin = before == llvm::StringRef::npos ? 0 : before + 1;
    const std::size_t end = std::min(buffer.find('\n', offset), buffer.size());
    Line line;
    line.text = buffer.slice(begin, end).str();
    line.bytes_before = offset - begin;
    line.points_before = static_cast<unsigned>(std::count_if(
        line.text.begin(),
        line.text.begin() + static_cast<std::ptrdiff_t>(line.bytes_before),
        [](char byte) { return !is_continuation(byte); }));
    return line;
}

bool is_taken(unsigned id) {
    return std::find(kTaken.begin(), kTaken.end(), id) != kTaken.end();
}

clang::DeclarationName named_in(const clang::Diagnostic& info) {
    for (unsigned index = 0; index < info.getNumArgs(); ++index) {
        switch (info.getArgKind(index)) {
            case clang::DiagnosticsEngine::ak_nameddecl:
                // NOLINTNEXTLINE(performance-no-int-to-ptr): as clang hands it over.
                return reinterpret_cast<const clang::NamedDecl*>(info.getRawArg(index))
                    ->getDeclName();
            case clang::DiagnosticsEngine::ak_declarationname:
                return clang::DeclarationName::getFromOpaqueInteger(info.getRawArg(index));
            case clang::DiagnosticsEngine::ak_identifierinfo:
                return {info.getArgIdentifier(index)};
            default:
                break;
        }
    }
    return {};
}

std::string word_at(const clang::Diagnostic& info) {
    if (!info.hasSourceManager() || info.getLocation().isInvalid()) {
        return {};
    }
    const clang::SourceManager& sources = info.getSourceManager();
    const Line line = line_of(sources, sources.getExpansionLoc(info.getLocation()));
    const auto begin = line.text.begin() + static_cast<std::ptrdiff_t>(line.bytes_before);
    return {begin, std::find_if_not(begin, line.text.end(), [](char byte) {
                return llvm::isAlnum(byte) || byte == '_';
            })};
}

}  // namespace

std::string cell_file(std::uint64_t count) {
    return std::string(kCellFilePrefix) + std::to_string(count);
}

void DiagnosticCollector::begin_cell(std::string file) {
    file_ = std::move(file);
    errors_.clear();
    warnings_.clear();
    redefinitions_.clear();
    last_ = nullptr;
    wants_previous_ = false;
}

DiagnosticCollector::Entry DiagnosticCollector::describe(
    std::string_view what, const clang::Diagnostic& info) const {
    Entry entry;
    entry.id = info.getID();
    llvm::SmallString<128> message;
    info.FormatDiagnostic(message);
    entry.message = message.str().str();
    std::string place;
    std::string source;
    if (info.hasSourceManager() && info.getLocation().isValid()) {
        const clang::SourceManager& sources = info.getSourceManager();
        const clang::SourceLocation at = sources.getExpansionLoc(info.getLocation());
        const clang::PresumedLoc presumed = sources.getPresumedLoc(at);
        if (presumed.isValid()) {
            const Line line = line_of(sources, at);
            place = std::string(presumed.getFilename()) + ":" + std::to_string(presumed.getLine()) +
                    ":" + std::to_string(line.points_before + 1) + ": ";
            entry.nowhere = kNoFile == presumed.getFilename();
            if (file_ == presumed.getFilename()) {
                entry.line = presumed.getLine();
                entry.column = line.points_before + 1;
            }
            if (line.text.size() <= kLineBytesMax) {
                source =
                    "\n    " + line.text + "\n    " + std::string(line.points_before, ' ') + "^";
            }
        }
    }
    entry.text = place + std::string(what) + ": " + entry.message + source;
    return entry;
}

void DiagnosticCollector::add_error(Entry entry, const clang::Diagnostic& info) {
    wants_previous_ = is_taken(info.getID());
    if (wants_previous_) {
        redefinitions_.push_back({named_in(info), word_at(info), clang::SourceLocation()});
    }
    errors_.push_back(std::move(entry));
    last_ = &errors_;
}

void DiagnosticCollector::add_note(Entry entry, const clang::Diagnostic& info) {
    if (std::exchange(wants_previous_, false)) {
        redefinitions_.back().previous = info.getLocation();
    }
    if (last_ == nullptr || last_->empty() || entry.nowhere) {
        return;
    }
    Entry& of = last_->back();
    // An error in a header is the cell's where the cell asked for it.
    if (of.line == 0 && entry.line != 0) {
        of.line = entry.line;
        of.column = entry.column;
    }
    if (of.notes.size() < kNotesMax) {
        of.notes.push_back(std::move(entry.text));
    } else {
        ++of.notes_left_out;
    }
}

void DiagnosticCollector::HandleDiagnostic(
    clang::DiagnosticsEngine::Level level, const clang::Diagnostic& info) {
    switch (level) {
        case clang::DiagnosticsEngine::Error:
        case clang::DiagnosticsEngine::Fatal:
            add_error(describe("error", info), info);
            return;
        case clang::DiagnosticsEngine::Warning:
            warnings_.push_back(describe("warning", info));
            last_ = &warnings_;
            wants_previous_ = false;
            return;
        case clang::DiagnosticsEngine::Note:
            add_note(describe("note", info), info);
            return;
        case clang::DiagnosticsEngine::Ignored:
        case clang::DiagnosticsEngine::Remark:
            return;
    }
}

CompileFailure DiagnosticCollector::failure() const {
    const Entry& first = errors_.front();
    CompileFailure failure;
    failure.name = "CompileError";
    failure.message = first.message;
    failure.kind = first.id == clang::diag::err_pp_file_not_found ? "import" : "syntax";
    failure.line = first.line;
    failure.column = first.column;
    for (std::size_t index = 0; index < std::min(errors_.size(), kErrorsMax); ++index) {
        const Entry& error = errors_[index];
        failure.traceback.push_back(error.text);
        failure.traceback.insert(failure.traceback.end(), error.notes.begin(), error.notes.end());
        if (error.notes_left_out > 0) {
            failure.traceback.push_back(
                "note: " + std::to_string(error.notes_left_out) + " more notes");
        }
    }
    if (errors_.size() > kErrorsMax) {
        failure.traceback.push_back(std::to_string(errors_.size() - kErrorsMax) + " more errors");
    }
    return failure;
}

std::string DiagnosticCollector::warnings() const {
    std::string text;
    for (const Entry& warning : warnings_) {
        text += warning.text + "\n";
    }
    return text;
}

}  // namespace cellkeep::cpp
