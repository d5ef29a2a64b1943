// SPDX-License-Identifier: Apache-2.0
//
// clang's diagnostics of a cell, kept as text with places in the cell.
#pragma once

#include "kernels/cpp/compile/compile_failure.hpp"

#include <clang/AST/DeclarationName.h>
#include <clang/Basic/Diagnostic.h>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::cpp {

/// Cells are files of this name and a number; earlier cells are named in notes.
inline constexpr std::string_view kCellFilePrefix = "cell ";

/// What clang's interpreter calls the file that the cells are in. Users are not shown it.
inline constexpr std::string_view kNoFile = "<<< inputs >>>";

/// The n-th cell's name.
std::string cell_file(std::uint64_t count);

/// How many errors of a cell are reported; clang stops by itself at twenty.
inline constexpr std::size_t kErrorsMax = 20;
/// How many notes of one error are reported: a call with no match names every candidate.
inline constexpr std::size_t kNotesMax = 8;

class DiagnosticCollector final : public clang::DiagnosticConsumer {
 public:
    /// A name that was declared before, and the place of the earlier declaration if clang gave it.
    struct Redefinition {
        clang::DeclarationName name;  // may be empty: then
        std::string spelled;          // what stands where the error is
        clang::SourceLocation previous;
    };

    void HandleDiagnostic(
        clang::DiagnosticsEngine::Level level, const clang::Diagnostic& info) override;
    /// The interpreter calls this before the errors are read. It forgets nothing.
    void clear() override {}

    void begin_cell(std::string file);
    bool has_errors() const { return !errors_.empty(); }
    /// With the first error's place; only if has_errors().
    CompileFailure failure() const;
    /// As text for stderr, a line each with its place.
    std::string warnings() const;
    const std::vector<Redefinition>& redefinitions() const { return redefinitions_; }

 private:
    struct Entry {
        unsigned id = 0;
        std::string message;
        bool nowhere = false;  // in kNoFile
        unsigned line = 0;     // 0: not in the cell
        unsigned column = 0;
        std::string text;  // "cell 3:1:5: error: …", the line and a caret
        std::vector<std::string> notes;
        std::size_t notes_left_out = 0;
    };

    Entry describe(std::string_view what, const clang::Diagnostic& info) const;
    void add_error(Entry entry, const clang::Diagnostic& info);
    void add_note(Entry entry, const clang::Diagnostic& info);

    std::string file_;
    std::vector<Entry> errors_;
    std::vector<Entry> warnings_;
    std::vector<Redefinition> redefinitions_;
    std::vector<Entry>* last_ = nullptr;  // what notes belong to
    bool wants_previous_ = false;         // the next note says where the earlier one stands
};

}  // namespace cellkeep::cpp
