// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/python_program.hpp"

#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace cellkeep::test {
namespace {

namespace fs = std::filesystem;
using environments::find_python;
using environments::kPythonMinor;
using environments::kPythonMinorMax;
using environments::kPythonMinorMin;
using environments::kPythonProgram;
using environments::kPythonVersion;
using environments::PythonProgram;

/// A folder for programs, and an empty one where they are asked.
struct Programs {
    Programs() {
        fs::create_directory(folder.file("scratch"));
        fs::create_directory(folder.file("bin"));
    }

    std::string script(const std::string& name, const std::string& text) const {
        std::string path = folder.file("bin/" + name);
        std::ofstream(path) << text;
        REQUIRE(::chmod(path.c_str(), 0755) == 0);
        return path;
    }
    /// A program that answers with this, whatever it is asked.
    std::string liar(const std::string& name, const std::string& answer) const {
        return script(name, "#!/bin/sh\ncat <<'END'\n" + answer + "\nEND\n");
    }
    /// Debian's program at another place; its library is where it was.
    std::string copy() const {
        std::string path = folder.file("bin/copy");
        fs::copy_file(kPythonProgram, path);
        return path;
    }
    /// What starts Debian's program.
    std::string starter(const std::string& name) const {
        return script(name, std::string("#!/bin/sh\nexec ") + kPythonProgram + " \"$@\"\n");
    }
    Result<PythonProgram> find(const std::string& wanted) const {
        return find_python(wanted, folder.file("bin") + ":relative:", folder.file("scratch"));
    }
    std::string refusal(const std::string& wanted) const {
        const auto found = find(wanted);
        REQUIRE(found.has_error());
        CHECK(found.error().code() == ErrorCode::kInvalidArgument);
        return found.error().message();
    }

    TemporaryDirectory folder;
};

/// Of a Python that says that it is Debian's program.
std::string answer(const std::string& version, const std::string& more = "") {
    return R"({"version": )" + version +
           R"(, "implementation": "CPython", "bits": 64, "machine": "x86_64", )"
           R"("free_threaded": false, "missing": [], "program": ")" +
           kPythonProgram + R"(", "prefix": "/usr", "standard_library": "/usr/lib/python)" +
           kPythonVersion + R"(", "headers": "", "libraries": [])" + more + "}";
}

/// "3.11.2" as an answer has it: [3,11,2].
std::string in_answer(std::string version) {
    std::replace(version.begin(), version.end(), '.', ',');
    return "[" + version + "]";
}

const std::string& debians_name() {
    static const std::string name = fs::path(kPythonProgram).filename();
    return name;
}

bool says(const std::string& text, const std::string& part) {
    INFO(text);
    return text.find(part) != std::string::npos;
}

TEST_CASE("Debian's Python is the one that every session has", "[environments][python]") {
    const Programs programs;
    for (const std::string& wanted :
         {std::string(kPythonVersion),
          std::string(kPythonProgram),
          "/bin/" + debians_name(),
          programs.starter("python")}) {
        const auto found = programs.find(wanted);
        REQUIRE(found.has_value());
        CHECK_FALSE(found.value().brought);
        CHECK(found.value().version == kPythonVersion);
        CHECK(found.value().name() == debians_name());
    }
}

TEST_CASE("a Python that an environment brings is known with its patch", "[environments][python]") {
    const std::string own = kPythonVersion;
    CHECK_FALSE(environments::is_brought(own));
    CHECK(environments::is_brought(own + ".2"));
    for (const int minor : {kPythonMinorMin, kPythonMinorMax}) {  // Debian's elsewhere, or before
        const std::string other = "3." + std::to_string(minor);
        CHECK_FALSE(environments::is_brought(other));
        CHECK(environments::is_brought(other + ".1"));
    }
}

TEST_CASE("another Python is asked what it is", "[environments][python]") {
    const Programs programs;
    const std::string copy = programs.copy();
    const auto found = programs.find(copy);
    INFO((found.has_error() ? found.error().message() : ""));
    REQUIRE(found.has_value());
    const PythonProgram& python = found.value();
    CHECK(python.brought);
    CHECK(python.program == copy);
    CHECK(python.version.starts_with(std::string(kPythonVersion) + "."));
    CHECK(python.minor == kPythonMinor);
    CHECK(python.prefix == "/usr");
    CHECK(python.standard_library == "/usr/lib/" + debians_name());
    CHECK(python.libraries.empty());  // the system's are there anyway
}

TEST_CASE("a script that starts a Python stands for it", "[environments][python]") {
    const Programs programs;
    const std::string copy = programs.copy();
    const auto found = programs.find(
        programs.script("python", "#!/bin/sh\necho welcome\nexec " + copy + " \"$@\"\n"));
    REQUIRE(found.has_value());
    CHECK(found.value().program == copy);
}

TEST_CASE("a version is looked for on PATH, and has to be one", "[environments][python]") {
    const Programs programs;
    for (const int minor : {kPythonMinorMin, kPythonMinorMax}) {
        const std::string version = "3." + std::to_string(minor);
        CHECK(says(programs.refusal(version), "no program python" + version));
    }
    for (const std::string& wanted :
         {"3." + std::to_string(kPythonMinorMin - 1),
          "3." + std::to_string(kPythonMinorMax + 1),
          std::string("2.7"),
          std::string("3"),
          std::string("3."),
          std::string("3.1"),
          std::string("3.012"),
          std::string("3.12.1"),
          std::string("4.12"),
          std::string("3.-1"),
          std::string("three"),
          std::string("python3.12"),
          std::string()}) {
        CAPTURE(wanted);
        CHECK(says(programs.refusal(wanted), "no version"));
    }
    // It is there, and is another.
    const std::string other = "3." + std::to_string(kPythonMinor - 1);
    (void)programs.starter("python" + other);
    CHECK(says(programs.refusal(other), std::string("is ") + kPythonVersion + "."));
}

TEST_CASE("a path that is no Python is refused", "[environments][python]") {
    const Programs programs;
    CHECK(says(programs.refusal("/nonexistent/python"), "is no program"));
    CHECK(says(programs.refusal("/usr/bin"), "is no program"));
    CHECK(says(programs.refusal("/etc/passwd"), "is no program"));
    CHECK(says(programs.refusal("./python"), "is no program"));
    for (const char* other : {"/bin/true", "/bin/false", "/bin/cat"}) {
        CHECK(says(programs.refusal(other), "does not answer as Python does"));
    }
    CHECK(says(programs.refusal(programs.script("none", "")), "does not run"));
    CHECK(says(
        programs.refusal(programs.script("lost", "#!/nonexistent/interpreter\n")), "does not run"));
    for (const char* text : {"3.12.1", "[]", "{}", "{\"version\": [3, 12, 1]}", "{\"version\""}) {
        CHECK(says(programs.refusal(programs.liar("odd", text)), "does not answer"));
    }
    CHECK(says(programs.refusal(programs.liar("typed", answer("\"3.12\""))), "does not answer"));
    const std::string killed = programs.script("killed", "#!/bin/sh\nkill -9 $$\n");
    CHECK(says(programs.refusal(killed), "does not answer"));
}

TEST_CASE("a Python that the kernel does not run in is refused", "[environments][python]") {
    const Programs programs;
    const auto refused = [&](const std::string& text) {
        return programs.refusal(programs.liar("python", text));
    };
    CHECK(says(refused(answer("[2, 7, 18]")), "is CPython 2.7.18, and environments are of"));
    CHECK(says(refused(answer("[3, 8, 20]")), "is CPython 3.8.20"));
    CHECK(says(refused(answer("[3, 15, 0]")), "is CPython 3.15.0"));
    CHECK(says(refused(answer("[4, 11, 0]")), "is CPython 4.11.0"));
    const auto with = [](const std::string& field, const std::string& value) {
        return answer("[3, 12, 1]", ", \"" + field + "\": " + value);
    };
    CHECK(says(refused(with("implementation", "\"PyPy\"")), "is PyPy 3.12.1"));
    CHECK(says(refused(with("bits", "32")), "not for x86-64"));
    CHECK(says(refused(with("machine", "\"aarch64\"")), "not for x86-64, but for aarch64"));
    CHECK(says(refused(with("free_threaded", "true")), "without the interpreter's lock"));
    CHECK(says(refused(with("missing", R"(["ssl", "sqlite3"])")), "needs: ssl sqlite3"));
}

TEST_CASE("what a program says of itself has to be so", "[environments][python]") {
    const Programs programs;
    const std::string is_debians = std::string("which is ") + kPythonProgram + " ";
    const std::string lies = programs.liar("python", answer("[3, 12, 1]"));
    CHECK(says(programs.refusal(lies), is_debians + kPythonVersion + "."));
    const auto claims = [&](const std::string& program) {
        return programs.refusal(
            programs.liar("other", answer("[3, 12, 1]", R"(, "program": ")" + program + "\"")));
    };
    CHECK(says(claims(lies), "no program of this machine"));  // a script
    CHECK(says(claims("/nonexistent"), "no program of this machine"));
    CHECK(says(claims("/etc"), "no program of this machine"));
    CHECK(says(claims("/bin/true"), "does not answer"));
    // A name that is a link of the program's is not what it says, though the version is its own.
    const auto own = programs.find(programs.copy());
    REQUIRE(own.has_value());
    const std::string& version = own.value().version;
    const std::string by_link = R"(, "program": "/bin/)" + debians_name() + "\"";
    CHECK(says(
        programs.refusal(programs.liar("link", answer(in_answer(version), by_link))),
        is_debians + version));
}

}  // namespace
}  // namespace cellkeep::test
