// SPDX-License-Identifier: Apache-2.0
//
// clang's incremental interpreter as a cell sees it. What includes clang's headers lies behind this
// one. Not for use by two threads; a fork has one of its own.
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

/// What became of a cell's text.
struct Compiled {
    std::optional<CompileFailure> failure;
    /// Not empty: it failed because these were there before; it may be tried again without them.
    std::vector<Shadowed> in_the_way;
    std::string warnings;
};

/// Makes the file that CompilerSetup names, and one that tells ninja when to make it again: when a
/// header is another. False if it could not; clang has said why on stderr.
bool precompile(const std::string& file, const std::string& dependencies_file);

class Compiler {
 public:
    /// The interpreter with the usual headers read; or what is wrong with this installation.
    static std::unique_ptr<Compiler> create(const CompilerSetup& setup, std::string& error);
    ~Compiler();
    Compiler(const Compiler&) = delete;
    Compiler& operator=(const Compiler&) = delete;

    static std::string version();

    /// Reads, checks and translates a cell, without running it. After a failure the compiler is not
    /// to be used any more: the process goes back to before (snapshot.hpp).
    Compiled compile(std::string_view code, std::uint64_t count);
    /// Runs what was compiled. What the cell throws passes through. A failure is a name that
    /// nothing defines.
    std::optional<CompileFailure> run();

    /// Earlier declarations make way for those of the next cell (shadowing.hpp).
    /// False if they are not there.
    bool hide(const std::vector<Shadowed>& shadowed);

    /// The next three change the compiler: for a process of their own.
    std::vector<std::string> complete(
        std::string_view code, std::size_t cursor, std::size_t& start);
    /// What the name or expression is: its declaration or its type, and its comment.
    std::optional<std::string> inspect(const std::string& expression);

    /// Destroys the cells' variables, last first.
    void end();

 private:
    class Implementation;
    explicit Compiler(std::unique_ptr<Implementation> implementation);
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace cellkeep::cpp
