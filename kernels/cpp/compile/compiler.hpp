// SPDX-License-Identifier: Apache-2.0
//
// clang's incremental interpreter for cells. Callers need no header of clang. One thread; a forked
// process has a copy of its own.
#pragma once

#include "kernels/cpp/compile/compile_failure.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::cpp {

struct CompilerSetup {
    std::string headers;      // the folder that holds cellkeep/display.hpp
    std::string precompiled;  // what precompile() has made of the standard library's, or ""
    /// Functions of this program that cells call, by their C names.
    std::vector<std::pair<std::string, void*>> functions;
};

/// The result of compiling a cell.
struct Compiled {
    std::optional<CompileFailure> failure;
    /// Not empty: it failed because these were declared before. It may succeed once they are
    /// hidden.
    std::vector<Shadowed> in_the_way;
    std::string warnings;
};

/// Writes the precompiled file that CompilerSetup names, and a depfile for ninja with its headers.
/// Returns false on failure; clang has written the reason to stderr.
bool precompile(const std::string& file, const std::string& dependencies_file);

class Compiler {
 public:
    /// Makes an interpreter with the preamble. An error says what is wrong with the installation.
    static std::unique_ptr<Compiler> create(const CompilerSetup& setup, std::string& error);
    ~Compiler();
    Compiler(const Compiler&) = delete;
    Compiler& operator=(const Compiler&) = delete;

    static std::string version();

    /// Compiles a cell without running it. After a failure this compiler cannot be used any more:
    /// the process's copy from before the cell goes on (snapshot.hpp).
    Compiled compile(std::string_view code, std::uint64_t count);
    /// Runs what was compiled. Exceptions of the cell pass through. Fails if a symbol is not
    /// defined.
    std::optional<CompileFailure> run();

    /// Hides earlier declarations, so that the next cell can declare their names (shadowing.hpp).
    /// Returns false if they do not exist.
    bool hide(const std::vector<Shadowed>& shadowed);

    /// The next two change the compiler. Call them in a forked child only.
    std::vector<std::string> complete(
        std::string_view code, std::size_t cursor, std::size_t& start);
    /// The declaration or the type of the name or expression, with its comment.
    std::optional<std::string> inspect(const std::string& expression);

    /// Destroys the cells' variables, last first.
    void end();

 private:
    class Implementation;
    explicit Compiler(std::unique_ptr<Implementation> implementation);
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace cellkeep::cpp
