// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/foreign_kernels.hpp"

#include "protocol/json.hpp"
#include "protocol/support/syscall.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

namespace cellkeep::session {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::size_t kArgumentsMax = 256;
constexpr std::size_t kReadOnlyMax = 32;
constexpr std::size_t kShebangBytesMax = 256;  // BINPRM_BUF_SIZE, execve(2)

/// Programs of Debian's that need more than /usr/bin and /usr/lib: what besides, if it is there.
struct WellKnown {
    const char* program;
    std::array<const char*, 3> paths;
};
constexpr std::array kWellKnown{WellKnown{"R", {"/etc/R", "/usr/share/R", "/usr/local/lib/R"}}};

struct Spec {
    std::string name;
    std::string directory;  // links followed
    std::string display_name;
    std::string language;
    std::vector<std::string> argv;
    std::vector<std::string> read_only;        // metadata.cellkeep.read_only
    std::vector<std::string> system_packages;  // metadata.cellkeep.system_packages
};

Error wrong(const std::string& what) {
    return {ErrorCode::kInvalidArgument, what};
}

Result<std::vector<std::string>> text_list(const json& value, const std::string& name) {
    std::vector<std::string> list;
    if (!value.is_array() || value.size() > kArgumentsMax) {
        return wrong(name + " is no list of texts");
    }
    for (const json& one : value) {
        if (!one.is_string()) {
            return wrong(name + " is no list of texts");
        }
        list.push_back(one.get<std::string>());
    }
    return list;
}

std::string text_or(const json& object, const char* name, std::string fallback) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>()
                                                       : std::move(fallback);
}

Status read_metadata(const json& document, Spec& spec) {
    const json own = document.value("/metadata/cellkeep"_json_pointer, json::object());
    if (!own.is_object()) {
        return wrong("metadata.cellkeep is no object");
    }
    if (own.contains("read_only")) {
        BOOST_OUTCOME_TRY(
            spec.read_only, text_list(own["read_only"], "metadata.cellkeep.read_only"));
    }
    for (const std::string& path : spec.read_only) {
        if (!fs::path(path).is_absolute() || spec.read_only.size() > kReadOnlyMax) {
            return wrong("metadata.cellkeep.read_only: " + path + " is no absolute path");
        }
    }
    if (own.contains("system_packages")) {
        BOOST_OUTCOME_TRY(
            spec.system_packages,
            text_list(own["system_packages"], "metadata.cellkeep.system_packages"));
    }
    const std::string transport = text_or(own, "transport", "tcp");
    if (transport != "tcp" && transport != "ipc") {
        return wrong("metadata.cellkeep.transport is neither tcp nor ipc");
    }
    return ok();
}

Result<Spec> read_spec(const std::string& directory) {
    const std::string path = directory + "/" + std::string(protocol::kKernelJsonName);
    BOOST_OUTCOME_TRY(const std::string text, read_file(path, protocol::kKernelJsonBytesMax));
    BOOST_OUTCOME_TRY(const json document, protocol::parse_json_object(text, "kernel.json"));
    Spec spec;
    spec.directory = directory;
    const auto argv = document.find("argv");
    BOOST_OUTCOME_TRY(spec.argv, text_list(argv == document.end() ? json() : *argv, "argv"));
    if (spec.argv.empty() || spec.argv[0].empty()) {
        return wrong("argv is empty");
    }
    spec.language = text_or(document, "language", "");
    spec.display_name = text_or(document, "display_name", spec.language);
    BOOST_OUTCOME_TRY(read_metadata(document, spec));
    return spec;
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return text;
}

bool is_beneath(const fs::path& path, const fs::path& directory) {
    const auto [end, at] =
        std::mismatch(directory.begin(), directory.end(), path.begin(), path.end());
    return end == directory.end();
}

/// What every session sees of the host anyway.
bool is_seen(const fs::path& path) {
    constexpr std::array kSeen{"/usr/bin", "/usr/lib", "/usr/lib64", "/bin", "/lib", "/lib64"};
    return std::any_of(kSeen.begin(), kSeen.end(), [&](const char* directory) {
        return is_beneath(path, directory);
    });
}

/// The standard library that a Python interpreter does not start without (PREFIX/lib/python3.N); of
/// a virtual environment it is the base's. Links of `program` are followed already.
std::optional<fs::path> python_library(const fs::path& program) {
    if (!program.filename().string().starts_with("python3")) {
        return std::nullopt;
    }
    std::error_code error;
    const fs::path libraries = program.parent_path().parent_path() / "lib";
    for (fs::directory_iterator at(libraries, error), end; !error && at != end;
         at.increment(error)) {
        if (at->path().filename().string().starts_with("python3") &&
            fs::exists(at->path() / "os.py", error)) {
            return at->path();
        }
    }
    return std::nullopt;
}

/// Whether a directory has only the folders that `make install` creates. /usr/local and home
/// folders may hold other things.
bool is_installation(const fs::path& prefix) {
    static const std::set<std::string> parts{
        "bin", "etc", "include", "lib", "lib64", "libexec", "man", "share", "ssl"};
    std::error_code error;
    fs::directory_iterator at(prefix, error);
    for (; !error && at != fs::directory_iterator(); at.increment(error)) {
        if (!parts.contains(at->path().filename().string())) {
            return false;
        }
    }
    return !error && prefix != "/usr/local";
}

/// The directory tree that belongs to a program alone: a virtual or Conda environment, or an
/// interpreter's own installation. Never a home folder or /usr/local.
std::optional<fs::path> own_tree(const fs::path& program) {
    const fs::path prefix = program.parent_path().parent_path();
    if (program.parent_path().filename() != "bin" || prefix == prefix.root_path()) {
        return std::nullopt;
    }
    std::error_code error;
    for (const char* mark : {"pyvenv.cfg", "conda-meta"}) {
        if (fs::exists(prefix / mark, error)) {
            return prefix;
        }
    }
    const bool owned = python_library(program).has_value() && is_installation(prefix);
    return owned ? std::optional(prefix) : std::nullopt;
}

/// The interpreter that `#!` names (execve(2)), or nullopt if the program is no script.
std::optional<fs::path> script_interpreter(const std::string& program) {
    std::ifstream file(program);
    std::string line(kShebangBytesMax, '\0');
    file.read(line.data(), static_cast<std::streamsize>(line.size()));
    line.resize(static_cast<std::size_t>(file.gcount()));
    if (!line.starts_with("#!")) {
        return std::nullopt;
    }
    const std::size_t begin = std::min(line.find_first_not_of(" \t", 2), line.size());
    return fs::path(line.substr(begin, line.find_first_of(" \t\n", begin) - begin));
}

/// Refuses a program that would be there inside and could not run: its interpreter or its library
/// is the host's alone.
Status check_runs_inside(const std::string& program, const std::vector<std::string>& shown) {
    std::error_code error;
    const fs::path real = fs::canonical(program, error);
    for (const auto& needed : {python_library(real), script_interpreter(program)}) {
        const bool seen =
            !needed || is_seen(*needed) ||
            std::any_of(shown.begin(), shown.end(), [&needed](const std::string& path) {
                return is_beneath(*needed, path);
            });
        if (!seen) {
            return Error(
                ErrorCode::kUnavailable,
                "its program " + program + " needs " + needed->string() +
                    ", which sessions do not see; name it in metadata.cellkeep.read_only");
        }
    }
    return ok();
}

/// argv[0] as it stands for this kernelspec: of the environment that the kernelspec is in, else on
/// the path. Links are not followed: a virtual environment's python is one.
std::string program_of(const Spec& spec, std::string_view path) {
    const std::string& wanted = spec.argv[0];
    const auto is_program = [](const fs::path& candidate) {
        return !find_program(candidate.string(), {}).empty();
    };
    if (wanted.find('/') != std::string::npos) {
        return fs::path(wanted).is_absolute() && is_program(wanted) ? wanted : std::string();
    }
    // PREFIX/share/jupyter/kernels/NAME
    const fs::path prefix =
        fs::path(spec.directory).parent_path().parent_path().parent_path().parent_path();
    if (is_program(prefix / "bin" / wanted)) {
        return (prefix / "bin" / wanted).string();
    }
    for (std::size_t begin = 0; begin <= path.size();) {
        const std::size_t end = std::min(path.find(':', begin), path.size());
        const fs::path candidate = fs::path(path.substr(begin, end - begin)) / wanted;
        if (candidate.is_absolute() && is_program(candidate)) {
            return candidate.string();
        }
        begin = end + 1;
    }
    return {};
}

/// The Debian packages that these files are of.
std::vector<std::string> packages_of(
    const std::set<std::string>& files, const std::string& dpkg_lists) {
    std::vector<std::string> packages;
    std::error_code error;
    for (fs::directory_iterator at(dpkg_lists, error), end; !error && at != end;
         at.increment(error)) {
        if (at->path().extension() != ".list") {
            continue;
        }
        std::ifstream list(at->path());
        for (std::string line; std::getline(list, line);) {
            if (files.contains(line)) {
                const std::string name = at->path().stem().string();
                packages.push_back(name.substr(0, name.find(':')));
                break;
            }
        }
    }
    std::sort(packages.begin(), packages.end());
    return packages;
}

/// What is mounted beside what every session sees, each once, at its own path.
std::vector<std::string> needed_paths(const Spec& spec, const std::string& program) {
    std::error_code error;
    const fs::path real = fs::canonical(program, error);
    std::set<std::string> paths(spec.read_only.begin(), spec.read_only.end());
    for (const fs::path& one : {fs::path(program), real}) {
        if (!is_seen(one)) {
            paths.insert(own_tree(one).value_or(one).string());
        }
    }
    for (const WellKnown& known : kWellKnown) {
        if (is_seen(real) && fs::path(program).filename() == known.program) {
            for (const char* path : known.paths) {
                if (fs::exists(path, error)) {
                    paths.insert(path);
                }
            }
        }
    }
    std::vector<std::string> needed;
    for (const std::string& path : paths) {  // sorted: what holds others comes first
        const bool held = std::any_of(needed.begin(), needed.end(), [&](const std::string& other) {
            return is_beneath(path, other);
        });
        if (!held) {
            needed.push_back(path);
        }
    }
    return needed;
}

/// Of the system's files: the program, what links lead to, what runs it if it is a script.
std::set<std::string> system_files(const std::string& program) {
    std::set<std::string> files;
    for (const fs::path& one : {fs::path(program), script_interpreter(program).value_or("")}) {
        std::error_code error;
        for (const fs::path& file : {one, fs::canonical(one, error)}) {
            if (is_seen(file) || is_beneath(file, "/usr")) {
                files.insert(file.string());
            }
        }
    }
    return files;
}

Result<ForeignKernel> make_kernel(Spec spec, std::string_view path, const std::string& dpkg_lists) {
    const std::string program = program_of(spec, path);
    if (program.empty()) {
        return Error(
            ErrorCode::kUnavailable,
            "it needs the program " + spec.argv[0] + ", which is not there");
    }
    ForeignKernel kernel;
    std::error_code error;
    const std::vector<std::string> shown = needed_paths(spec, program);
    BOOST_OUTCOME_TRY(check_runs_inside(program, shown));
    for (const std::string& needed : shown) {
        if (!fs::exists(needed, error)) {
            return Error(ErrorCode::kUnavailable, "it needs " + needed + ", which is not there");
        }
        // If it is removed later, this kernel fails, and not every session.
        kernel.shared.push_back(
            {.source = needed, .target = needed, .optional = true, .shared = true});
    }
    std::set<std::string> files = system_files(program);
    kernel.system_files.assign(files.begin(), files.end());
    kernel.system_files.insert(
        kernel.system_files.end(), spec.read_only.begin(), spec.read_only.end());
    files.insert(spec.directory + "/" + std::string(protocol::kKernelJsonName));
    kernel.packages = packages_of(files, dpkg_lists);
    kernel.packages.insert(
        kernel.packages.end(), spec.system_packages.begin(), spec.system_packages.end());
    kernel.name = std::move(spec.name);
    kernel.display_name = std::move(spec.display_name);
    kernel.language = std::move(spec.language);
    kernel.resources = std::move(spec.directory);
    kernel.program = program;
    return kernel;
}

/// The kernelspecs in a directory, or it itself if it is one: {name, directory}.
std::vector<std::pair<std::string, std::string>> kernelspecs_in(const std::string& directory) {
    std::vector<std::pair<std::string, std::string>> found;
    std::error_code error;
    const auto add = [&](const fs::path& path) {
        if (fs::exists(path / protocol::kKernelJsonName, error)) {
            const fs::path real = fs::canonical(path, error);
            if (!error) {
                found.emplace_back(lower(path.filename().string()), real.string());
            }
        }
    };
    const fs::path real = fs::canonical(directory, error);
    if (!error) {
        add(real);
        for (fs::directory_iterator at(real, error), end; !error && at != end;
             at.increment(error)) {
            add(at->path());
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace

ForeignKernels find_foreign_kernels(
    const std::vector<std::string>& directories,
    std::string_view path,
    const std::string& dpkg_lists) {
    ForeignKernels result;
    std::set<std::string> names;
    for (const std::string& directory : directories) {
        for (const auto& [name, place] : kernelspecs_in(directory)) {
            if (!names.insert(name).second) {
                continue;  // Jupyter takes the first one as well
            }
            const auto make = [&, &name = name, &place = place]() -> Result<ForeignKernel> {
                if (!protocol::is_language_name(name)) {
                    return wrong("its name is none that a language may have");
                }
                BOOST_OUTCOME_TRY(Spec spec, read_spec(place));
                spec.name = name;
                return make_kernel(std::move(spec), path, dpkg_lists);
            };
            if (auto kernel = make()) {
                result.found.push_back(std::move(kernel.value()));
            } else {
                result.not_offered.push_back(
                    {name, place + ": " + kernel.error().message(), kernel.error().hint()});
            }
        }
    }
    return result;
}

}  // namespace cellkeep::session
