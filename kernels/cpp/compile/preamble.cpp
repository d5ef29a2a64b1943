// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/compile/preamble.hpp"

#include "kernels/cpp/compile/compiler.hpp"

#include <clang/Frontend/FrontendActions.h>
#include <clang/Interpreter/Interpreter.h>
#include <clang/Lex/PreprocessorOptions.h>
#include <llvm/Support/raw_ostream.h>
#include <utility>
#include <vector>

namespace cellkeep::cpp {

namespace {

constexpr std::string_view kHeaders = R"(#include <cxxabi.h>
#include <algorithm>
#include <any>
#include <array>
#include <atomic>
#include <bit>
#include <bitset>
#include <cassert>
#include <charconv>
#include <chrono>
#include <cmath>
#include <complex>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iomanip>
#include <ios>
#include <iostream>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <numbers>
#include <numeric>
#include <optional>
#include <ostream>
#include <queue>
#include <random>
#include <ranges>
#include <regex>
#include <set>
#include <span>
#include <sstream>
#include <stack>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>
)";

}  // namespace

std::string_view preamble() {
    return kHeaders;
}

llvm::Expected<std::unique_ptr<clang::CompilerInstance>> make_compiler(
    const std::string& headers, const std::string& precompiled) {
    const std::string include = "-I" + headers;
    clang::IncrementalCompilerBuilder builder;
    builder.SetCompilerArgs(
        {"-std=c++20",
         "-resource-dir",
         CELLKEEP_CLANG_RESOURCES,
         include.c_str(),
         "-fshow-overloads=best",
         "-Wno-unused-value",
         "-Wno-comma",
         "-Wno-main"});
    auto compiler = builder.CreateCpp();
    if (compiler) {
        // An update of the system's packages gives all headers another time, and mostly the same
        // content.
        (*compiler)->getHeaderSearchOpts().ValidateASTInputFilesContent = true;
    }
    if (compiler && !precompiled.empty()) {
        (*compiler)->getPreprocessorOpts().ImplicitPCHInclude = precompiled;
        // The system's headers are not taken for what they were then.
        (*compiler)->getHeaderSearchOpts().ModulesValidateSystemHeaders = true;
    }
    return compiler;
}

bool precompile(const std::string& file, const std::string& dependencies_file) {
    auto compiler = make_compiler("", "");
    if (!compiler) {
        llvm::logAllUnhandledErrors(compiler.takeError(), llvm::errs());
        return false;
    }
    clang::FrontendOptions& options = (*compiler)->getFrontendOpts();
    options.ProgramAction = clang::frontend::GeneratePCH;
    options.OutputFile = file;
    options.Inputs = {clang::FrontendInputFile(
        llvm::MemoryBufferRef(llvm::StringRef(kHeaders), "preamble"),
        clang::InputKind(clang::Language::CXX).getHeader())};
    clang::DependencyOutputOptions& dependencies = (*compiler)->getDependencyOutputOpts();
    dependencies.OutputFile = dependencies_file;
    dependencies.Targets = {file};
    dependencies.IncludeSystemHeaders = true;
    // Else they are left for the end of a file that uses it, and a session has no such end.
    (*compiler)->getLangOpts().PCHInstantiateTemplates = true;
    clang::GeneratePCHAction action;
    return (*compiler)->ExecuteAction(action);
}

}  // namespace cellkeep::cpp
