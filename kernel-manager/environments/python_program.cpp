// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/python_program.hpp"

#include "kernel-manager/environments/bounded_command.hpp"
#include "protocol/json.hpp"
#include "protocol/support/text.hpp"

#include <nlohmann/json.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace cellkeep::environments {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kAnswerTime{30};
constexpr std::uint64_t kAnswerBytesMax = 1UL << 20U;
constexpr std::size_t kLibrariesMax = 64;
constexpr int kMajor = 3;

/// Every Python from 2.7 on understands it, so that each can say what it is. One line of JSON. The
/// modules are those without which the kernel does not start.
constexpr const char* kQuestion = R"py(
import json, os, platform, struct, sys, sysconfig
missing = []
for name in "asyncio ctypes hashlib select socket sqlite3 ssl zlib".split():
    try:
        __import__(name)
    except ImportError:
        missing.append(name)
for name in "bz2 lzma readline uuid decimal".split():
    try:
        __import__(name)
    except ImportError:
        pass
prefix = getattr(sys, "base_prefix", sys.prefix)
library = sysconfig.get_path("stdlib")
used = set(line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if ".so" in line)
inside = prefix.rstrip("/") + "/"
print("\n" + json.dumps({
    "version": list(sys.version_info[:3]),
    "implementation": platform.python_implementation(),
    "bits": struct.calcsize("P") * 8,
    "machine": platform.machine(),
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "missing": missing,
    "program": os.path.realpath(sys.executable),
    "prefix": prefix,
    "standard_library": library,
    "headers": sysconfig.get_path("include"),
    "libraries": [] if prefix == "/usr" else sorted(
        path for path in used if path.startswith(inside) and not path.startswith(library + "/")),
}))
)py";

struct Answer {
    std::array<int, 3> version{};
    std::string implementation;
    std::string machine;
    int bits = 0;
    bool free_threaded = false;
    std::vector<std::string> missing;
    PythonProgram python;
};

Error refuse(const std::string& program, const std::string& why, const std::string& hint = {}) {
    return {ErrorCode::kInvalidArgument, program + " " + why, hint};
}

std::string versions_taken() {
    return "CPython 3." + std::to_string(kPythonMinorMin) + " to 3." +
           std::to_string(kPythonMinorMax);
}

std::string show(const std::array<int, 3>& version) {
    return std::to_string(version[0]) + "." + std::to_string(version[1]) + "." +
           std::to_string(version[2]);
}

bool is_program(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
           ::access(path.c_str(), X_OK) == 0;
}

/// A program of this machine, and not a script that starts one.
bool is_machine_code(const std::string& path) {
    constexpr std::string_view kElf64(
        "\x7f"
        "ELF\x02");
    std::array<char, kElf64.size()> begin{};
    std::ifstream file(path, std::ios::binary);
    return file.read(begin.data(), begin.size()) &&
           std::string_view(begin.data(), begin.size()) == kElf64;
}

/// From what it said; libraries may have said something before. Throws what nlohmann::json throws.
Answer read_answer(const nlohmann::json& json) {
    Answer answer;
    json.at("version").get_to(answer.version);
    json.at("implementation").get_to(answer.implementation);
    json.at("machine").get_to(answer.machine);
    json.at("bits").get_to(answer.bits);
    json.at("free_threaded").get_to(answer.free_threaded);
    json.at("missing").get_to(answer.missing);
    PythonProgram& python = answer.python;
    json.at("program").get_to(python.program);
    json.at("prefix").get_to(python.prefix);
    json.at("standard_library").get_to(python.standard_library);
    json.at("headers").get_to(python.headers);
    json.at("libraries").get_to(python.libraries);
    python.version = show(answer.version);
    python.minor = answer.version[1];
    python.brought = true;
    return answer;
}

Result<Answer> ask(const std::string& program, const std::string& scratch) {
    BoundedCommand command;
    // Flags that Python 2 knows, too. -I would do the same.
    command.argv = {program, "-E", "-s", "-S", "-B", "-c", kQuestion};
    command.environment = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + scratch};
    command.directory = scratch;
    command.deadline = std::chrono::steady_clock::now() + kAnswerTime;
    command.bytes_max = kAnswerBytesMax;
    const auto end = run_bounded(command);
    if (end.has_error()) {
        return refuse(program, "does not run: " + end.error().message());
    }
    const std::string_view said = trim(end.value().said, " \t\r\n");
    const Error no_answer =
        refuse(program, "does not answer as Python does: " + std::string(said.substr(0, 512)));
    if (!end.value().succeeded) {
        return no_answer;
    }
    const std::size_t line = said.rfind('\n');
    const auto json = protocol::parse_json_object(
        said.substr(line == std::string_view::npos ? 0 : line + 1), "answer");
    if (json.has_error()) {
        return no_answer;
    }
    try {
        return read_answer(json.value());
    } catch (const nlohmann::json::exception&) {
        return no_answer;
    }
}

Status check_kind(const std::string& program, const Answer& answer) {
    const int major = answer.version[0];
    const int minor = answer.version[1];
    if (answer.implementation != "CPython" || major != kMajor || minor < kPythonMinorMin ||
        minor > kPythonMinorMax) {
        return refuse(
            program,
            "is " + answer.implementation + " " + show(answer.version) +
                ", and environments are of " + versions_taken());
    }
    if (answer.bits != 64 || answer.machine != "x86_64") {
        return refuse(program, "is not for x86-64, but for " + answer.machine);
    }
    if (answer.free_threaded) {
        return refuse(
            program, "is built without the interpreter's lock, and the kernel has no such module");
    }
    std::string missing;
    for (const std::string& module : answer.missing) {
        missing += " " + module;
    }
    return missing.empty() ? Status(ok())
                           : refuse(program, "lacks modules that the kernel needs:" + missing);
}

bool is_beneath(const std::string& path, const std::string& folder) {
    return path.starts_with(folder + "/");
}

/// It has the places of an installation that can be copied.
Status check_places(PythonProgram& python) {
    std::error_code error;
    if (!is_beneath(python.standard_library, python.prefix) ||
        !fs::exists(fs::path(python.standard_library) / "os.py", error)) {
        return refuse(
            python.program, "has no standard library of files: " + python.standard_library);
    }
    if (python.libraries.size() > kLibrariesMax) {
        return refuse(python.program, "uses too many libraries of its own");
    }
    for (const std::string& library : python.libraries) {
        if (!is_beneath(library, python.prefix)) {
            return refuse(python.program, "says that it uses " + library);
        }
    }
    if (!is_beneath(python.headers, python.prefix) || !fs::is_directory(python.headers, error)) {
        python.headers.clear();
    }
    return ok();
}

std::string find_in(const std::string& name, std::string_view folders) {
    for (std::size_t begin = 0; begin <= folders.size();) {
        const std::size_t end = std::min(folders.find(':', begin), folders.size());
        const std::string_view folder = folders.substr(begin, end - begin);
        std::string program = std::string(folder) + "/" + name;
        // A relative entry would mean another program elsewhere.
        if (folder.starts_with('/') && is_program(program)) {
            return program;
        }
        begin = end + 1;
    }
    return {};
}

bool is_version(std::string_view wanted) {
    const std::string_view minor = wanted.substr(std::min<std::size_t>(wanted.size(), 2));
    return wanted.starts_with("3.") && !minor.empty() && minor.size() <= 2 &&
           minor.find_first_not_of("0123456789") == std::string_view::npos;
}

Result<std::string> locate(const std::string& wanted, std::string_view folders) {
    if (wanted.find('/') != std::string::npos) {
        if (!is_program(wanted)) {
            return refuse(wanted, "is no program");
        }
        return fs::absolute(wanted).string();
    }
    if (!is_version(wanted) || std::stoi(wanted.substr(2)) < kPythonMinorMin ||
        std::stoi(wanted.substr(2)) > kPythonMinorMax) {
        return Error(
            ErrorCode::kInvalidArgument,
            wanted + " is no version that environments are of",
            "They are of " + versions_taken() + ": \"3.12\", or the path of a program.");
    }
    std::string found = find_in("python" + wanted, folders);
    if (found.empty()) {
        return Error(
            ErrorCode::kInvalidArgument,
            "there is no program python" + wanted + " on PATH",
            "Install one (uv python install " + wanted + ") and give its path (uv python find " +
                wanted + ").");
    }
    return found;
}

}  // namespace

bool is_brought(std::string_view version) {
    return std::count(version.begin(), version.end(), '.') == 2;
}

Result<PythonProgram> find_python(
    const std::string& wanted, std::string_view folders, const std::string& scratch) {
    if (wanted == kPythonVersion || wanted == kPythonProgram) {
        return PythonProgram{};
    }
    BOOST_OUTCOME_TRY(const std::string found, locate(wanted, folders));
    BOOST_OUTCOME_TRY(const Answer first, ask(found, scratch));
    BOOST_OUTCOME_TRY(check_kind(found, first));
    const std::string& program = first.python.program;
    if (!is_program(program) || !is_machine_code(program)) {
        return refuse(
            found, "says that it is " + program + ", which is no program of this machine");
    }
    // What was found may be a script that starts the program, or only says so: the program itself
    // counts.
    BOOST_OUTCOME_TRY(Answer second, ask(program, scratch));
    BOOST_OUTCOME_TRY(check_kind(program, second));
    if (second.version != first.version || second.python.program != program) {
        return refuse(
            found,
            "says that it is " + program + " " + show(first.version) + ", which is " +
                second.python.program + " " + show(second.version));
    }
    if (is_version(wanted) && second.version[1] != std::stoi(wanted.substr(2))) {
        return refuse(found, "is " + show(second.version));
    }
    if (program == kPythonProgram) {
        return PythonProgram{};
    }
    BOOST_OUTCOME_TRY(check_places(second.python));
    return std::move(second.python);
}

}  // namespace cellkeep::environments
