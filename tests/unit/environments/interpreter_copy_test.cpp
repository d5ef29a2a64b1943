// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/interpreter_copy.hpp"

#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace cellkeep::test {
namespace {

namespace fs = std::filesystem;
using environments::copy_interpreter;
using environments::PythonProgram;

/// What looks like an installation.
struct Installation {
    Installation() {
        for (const char* file :
             {"bin/python3.12",
              "lib/libother.so.1",
              "lib/python3.12/os.py",
              "lib/python3.12/__pycache__/os.cpython-312.pyc",
              "lib/python3.12/test/test_os.py",
              "lib/python3.12/unittest/case.py",
              "lib/python3.12/unittest/tests/test_case.py",
              "lib/python3.12/idlelib/idle.py",
              "lib/python3.12/site-packages/rich.py",
              "lib/python3.12/config-3.12-x86_64-linux-gnu/libpython3.12.a",
              "lib/python3.12/lib-dynload/_ssl.so",
              "lib/pkgconfig/python3.pc",
              "include/python3.12/Python.h"}) {
            fs::create_directories(fs::path(folder.file("old/" + std::string(file))).parent_path());
            std::ofstream(folder.file("old/" + std::string(file))) << file;
        }
        fs::create_symlink("os.py", folder.file("old/lib/python3.12/posix.py"));
        fs::create_symlink("/nonexistent", folder.file("old/lib/python3.12/dangling.py"));
        fs::create_directory_symlink("/etc", folder.file("old/lib/python3.12/folder"));
        python.program = folder.file("old/bin/python3.12");
        python.version = "3.12.1";
        python.minor = 12;
        python.brought = true;
        python.prefix = folder.file("old");
        python.standard_library = folder.file("old/lib/python3.12");
        python.headers = folder.file("old/include/python3.12");
        python.libraries = {folder.file("old/lib/libother.so.1")};
    }

    std::set<std::string> copied() const {
        std::set<std::string> files;
        const fs::path root = folder.file("new");
        for (const auto& entry : fs::recursive_directory_iterator(root)) {
            if (!entry.is_directory()) {
                files.insert(entry.path().lexically_relative(root).string());
            }
        }
        return files;
    }

    TemporaryDirectory folder;
    PythonProgram python;
};

TEST_CASE("a copy of a Python has what it needs, and no more", "[environments][python]") {
    const Installation installation;
    const Status done =
        copy_interpreter(installation.python, installation.folder.file("new"), 1UL << 20U);
    INFO((done.has_error() ? done.error().message() : ""));
    REQUIRE(done.has_value());
    CHECK(
        installation.copied() == std::set<std::string>{
                                     "bin/python3.12",
                                     "include/python3.12/Python.h",
                                     "lib/libother.so.1",
                                     "lib/python3.12/lib-dynload/_ssl.so",
                                     "lib/python3.12/os.py",
                                     "lib/python3.12/posix.py",
                                     "lib/python3.12/unittest/case.py"});
    CHECK(fs::is_regular_file(
        fs::symlink_status(installation.folder.file("new/lib/python3.12/posix.py"))));
}

TEST_CASE("a copy of a Python has a bound", "[environments][python]") {
    const Installation installation;
    std::uintmax_t bytes = 0;
    REQUIRE(copy_interpreter(installation.python, installation.folder.file("new"), 1UL << 20U)
                .has_value());
    for (const std::string& file : installation.copied()) {
        bytes += fs::file_size(installation.folder.file("new/" + file));
    }
    CHECK(copy_interpreter(installation.python, installation.folder.file("exact"), bytes)
              .has_value());
    const Status beyond =
        copy_interpreter(installation.python, installation.folder.file("less"), bytes - 1);
    REQUIRE(beyond.has_error());
    CHECK(beyond.error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("a program that would not find its library is not copied", "[environments][python]") {
    Installation installation;
    std::ofstream(installation.folder.file("old/lib/libpython3.12.so.1.0")) << "library";
    installation.python.libraries = {installation.folder.file("old/lib/libpython3.12.so.1.0")};
    const Status refused =
        copy_interpreter(installation.python, installation.folder.file("new"), 1UL << 20U);
    REQUIRE(refused.has_error());  // its program is a text
    CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace cellkeep::test
