// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/text/cell_source.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace cellkeep::cpp {

namespace {

class Writer {
 public:
    Writer(std::string_view code, const std::string& file, std::uint64_t serial)
        : code_(code), file_(file), serial_(serial) {}

    void add(const Piece& piece) {
        const bool runs =
            piece.kind == Piece::Kind::kStatement || piece.kind == Piece::Kind::kValue;
        if (runs && !in_function_) {
            begin_function();
        } else if (!runs) {
            end_function();
        }
        if (runs || piece.initializes) {
            tell_line(piece);
        }
        if (piece.kind == Piece::Kind::kValue) {
            source_ += "::cellkeep::detail::show_value, (\n";
            copy(piece, piece.begin);
            source_ += ");\n";
        } else {
            // A declaration with the comments above it, which inspection shows.
            const bool documented = piece.kind == Piece::Kind::kDeclaration;
            copy(piece, documented ? code_.find_first_not_of(" \t\r\n", copied_) : piece.begin);
        }
        copied_ = piece.end;
    }

    /// The cell is a whole program: when all of it is there, its main runs.
    void run_main(const Piece& piece) {
        end_function();
        tell_line(piece);
        source_ += "static int " + next_name() + " = (::cellkeep::detail::run_main(main), 0);\n";
    }

    std::string finish() {
        end_function();
        return std::move(source_);
    }

 private:
    void begin_function() {
        in_function_ = true;
        function_ = next_name();
        source_ += "void " + function_ + "() {\n";
    }

    /// Where the cell is, for when what it calls throws or crashes
    /// (include/cellkeep/publish_abi.h).
    void tell_line(const Piece& piece) {
        const std::string line = "::cellkeep_cpp_line = " + std::to_string(line_of(piece.begin));
        source_ +=
            in_function_ ? line + ";\n" : "static int " + next_name() + " = (" + line + ", 0);\n";
    }

    std::string next_name() {
        return std::string(kWrapperPrefix) + std::to_string(serial_) + "_" +
               std::to_string(++names_);
    }

    std::ptrdiff_t line_of(std::size_t at) const {
        const std::string_view before = code_.substr(0, at);
        return 1 + std::count(before.begin(), before.end(), '\n');
    }

    void end_function() {
        if (std::exchange(in_function_, false)) {
            // An initializer, because those run in the order of the file.
            source_ += "}\nint " + function_ + "_ran = (" + function_ + "(), 0);\n";
        }
    }

    /// The piece from `begin`, on the lines and in the columns that it has in the cell.
    void copy(const Piece& piece, std::size_t begin) {
        const std::string_view before = code_.substr(0, begin);
        const std::size_t newline = before.rfind('\n');
        const std::string_view left =
            newline == std::string_view::npos ? before : before.substr(newline + 1);
        // A space for each character: columns are counted in those.
        const auto column = std::count_if(left.begin(), left.end(), [](char byte) {
            return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U;
        });
        source_ += "#line " + std::to_string(line_of(begin)) + " \"" + file_ + "\"\n";
        source_.append(static_cast<std::size_t>(column), ' ');
        std::string text(code_.substr(begin, piece.end - begin));
        for (const std::size_t capture : piece.idle_captures) {
            text[capture - begin] = ' ';
        }
        source_ += text + "\n";
    }

    std::string_view code_;
    const std::string& file_;
    std::uint64_t serial_;
    std::string source_;
    std::size_t copied_ = 0;  // of code_, the end of the last piece
    std::string function_;
    int names_ = 0;
    bool in_function_ = false;
};

}  // namespace

std::string cell_source(
    std::string_view code,
    const std::string& file,
    std::uint64_t serial,
    const MeaningOf& meaning_of) {
    Writer writer(code, file, serial);
    const Piece* program = nullptr;
    bool runs_by_itself = false;  // once is enough
    const std::vector<Piece> pieces = split_cell(tokenize(code), meaning_of);
    for (const Piece& piece : pieces) {
        writer.add(piece);
        program = piece.defines_main ? &piece : program;
        runs_by_itself = runs_by_itself || piece.calls_main;
    }
    if (program != nullptr && !runs_by_itself) {
        writer.run_main(*program);
    }
    return writer.finish();
}

}  // namespace cellkeep::cpp
