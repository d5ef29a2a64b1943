// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/environment_store.hpp"

#include "kernel-manager/environments/distributions.hpp"
#include "kernel-manager/environments/installer.hpp"
#include "kernel-manager/environments/interpreter_copy.hpp"
#include "kernel-manager/environments/name.hpp"
#include "kernel-manager/environments/python_tree.hpp"
#include "kernel-manager/environments/requirements.hpp"
#include "kernel-manager/image/image_scratch.hpp"
#include "kernel-manager/image/store_lock.hpp"
#include "protocol/support/syscall.hpp"
#include "protocol/support/time.hpp"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace cellkeep::environments {

namespace fs = std::filesystem;

namespace {

constexpr const char* kImages = "/images";
constexpr const char* kNames = "/names";
constexpr const char* kStoreLock = "/lock";
constexpr const char* kBuilding = "building-";
constexpr const char* kRecordEnding = ".json";
constexpr const char* kBuiltWheels = "/wheels";
constexpr std::size_t kRandomBytes = 8;
constexpr std::size_t kFingerprintBytes = 32;

/// Of a build that was killed. The caller has the lock, so no other goes on.
Status remove_left_over(const std::string& directory) {
    std::error_code error;
    for (fs::directory_iterator at(directory, error), end; !error && at != end;
         at.increment(error)) {
        if (at->path().filename().string().starts_with(kBuilding)) {
            BOOST_OUTCOME_TRY(image::remove_tree(at->path().string()));
        }
    }
    return error ? Error::from_errno(error.value(), "readdir(" + directory + ")") : Status(ok());
}

/// A build removes images that were not used for long (image/image_retention.hpp). Those of named
/// environments must stay, so they are all in use during a build.
Result<std::vector<image::ImageInUse>> hold_images(image::Store& images) {
    std::vector<image::ImageInUse> held;
    BOOST_OUTCOME_TRY(const auto all, images.list());
    for (const image::StoredImage& one : all) {
        auto used = images.use(one.record);
        if (used.has_value()) {  // what is damaged has gone with this
            held.push_back(std::move(used).value());
        }
    }
    return held;
}

/// The kernel runs in the environment. What it needs comes from the default one, or is installed;
/// then with pip, so that sessions can install more.
void add_kernel_packages(const PythonProgram& python, std::vector<std::string>& requirements) {
    if (python.brought) {
        requirements.insert(requirements.end(), kernel_packages().begin(), kernel_packages().end());
        requirements.emplace_back("pip");
    }
}

Result<std::vector<std::string>> kernel_constraints(
    const std::string& packages, const PythonProgram& python) {
    if (python.minor < kPythonMinorPinned) {
        return std::vector<std::string>{};
    }
    BOOST_OUTCOME_TRY(const Distributions needed, kernel_distributions(packages));
    std::vector<std::string> constraints;
    constraints.reserve(needed.size());
    for (const auto& [name, distribution] : needed) {
        constraints.push_back(name + "==" + distribution.version);
    }
    return constraints;
}

/// Each gives a wheel of its own name, which the installer is kept to. So no build can bring
/// another package than it was asked for.
Status build_sources(
    const EnvironmentOrder& order, const image::Progress& progress, InstallOrder& install) {
    BOOST_OUTCOME_TRY(const auto names, check_source_names(order.sources));
    if (names.empty()) {
        return ok();
    }
    install.wheels = install.scratch + kBuiltWheels;
    if (::mkdir(install.wheels.c_str(), S_IRWXU) < 0) {
        return Error::from_errno(errno, "mkdir(" + install.wheels + ")");
    }
    for (const std::string& name : names) {
        progress("building " + name + " from its source, in a sandbox");
        const SourceOrder source{
            name,
            lines_about(install.requirements, name),
            order.index,
            install.wheels,
            install.deadline,
            install.bytes_max};
        BOOST_OUTCOME_TRY(
            const std::string file,
            with_context(order.build_source(source), "build " + name + " from its source"));
        BOOST_OUTCOME_TRY(std::string pin, pin_built(file, name));
        install.constraints.push_back(std::move(pin));
        for (std::string& line : install.requirements) {
            line = name_in(line) == name ? without_hashes(line) : line;
        }
    }
    return ok();
}

/// Of what was installed. An operator who lets code run wants to know that nothing needed it.
Status note_built(const EnvironmentOrder& order, NamedRecord& record) {
    BOOST_OUTCOME_TRY(record.built, check_source_names(order.sources));
    for (const std::string& name : record.built) {
        if (!record.packages.contains(name)) {
            return Error(
                ErrorCode::kInvalidArgument,
                "--build-sdists: " + name + " was built, and none of the requirements needs it");
        }
    }
    return ok();
}

}  // namespace

Result<std::string> default_environments_directory() {
    // Read once at start, before any other thread exists, hence:
    // NOLINTBEGIN(concurrency-mt-unsafe)
    const std::pair<const char*, const char*> places[] = {
        {std::getenv("CELLKEEP_ENV_DIR"), ""},
        {std::getenv("XDG_DATA_HOME"), "/cellkeep/environments"},
        {std::getenv("HOME"), "/.local/share/cellkeep/environments"}};
    // NOLINTEND(concurrency-mt-unsafe)
    for (const auto& [value, below] : places) {
        if (value != nullptr && value[0] == '/') {
            return std::string(value) + below;
        }
    }
    return Error(
        ErrorCode::kInvalidArgument,
        "there is no place for named environments",
        "Set CELLKEEP_ENV_DIR, XDG_DATA_HOME or HOME.");
}

Result<EnvironmentStore> EnvironmentStore::open(
    const std::string& directory, const EnvironmentBounds& bounds) {
    // The private store makes the directory above it, too, but not private.
    std::error_code error;
    fs::create_directories(fs::path(directory).parent_path(), error);
    if (error) {
        return Error::from_errno(error.value(), "mkdir(" + directory + ")");
    }
    if (::mkdir(directory.c_str(), S_IRWXU) < 0 && errno != EEXIST) {
        return Error::from_errno(errno, "mkdir(" + directory + ")");
    }
    struct stat info {};
    if (::lstat(directory.c_str(), &info) < 0) {
        return Error::from_errno(errno, "stat(" + directory + ")");
    }
    if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() ||
        (info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return Error(
            ErrorCode::kPermissionDenied,
            directory + " is no directory of this user alone",
            "Set CELLKEEP_ENV_DIR to one, or: chmod 700 " + directory);
    }
    const std::string names = directory + kNames;
    if (::mkdir(names.c_str(), S_IRWXU) < 0 && errno != EEXIST) {
        return Error::from_errno(errno, "mkdir(" + names + ")");
    }
    BOOST_OUTCOME_TRY(image::Store images, image::Store::open(directory + kImages));
    return EnvironmentStore(directory, std::move(images), bounds);
}

std::string EnvironmentStore::names() const {
    return directory_ + kNames;
}

std::string EnvironmentStore::path_of(const std::string& name) const {
    return names() + "/" + name + kRecordEnding;
}

Result<UniqueFd> EnvironmentStore::lock() const {
    BOOST_OUTCOME_TRY(UniqueFd file, image::open_lock(directory_ + kStoreLock));
    BOOST_OUTCOME_TRY(image::lock_file(file.get(), LOCK_EX));
    return file;
}

Result<std::vector<NamedRecord>> EnvironmentStore::records() const {
    std::vector<NamedRecord> found;
    std::error_code error;
    for (fs::directory_iterator at(names(), error), end; !error && at != end; at.increment(error)) {
        const auto text = read_file(at->path().string(), kNamedRecordBytesMax);
        if (text.has_error()) {
            continue;  // It has gone meanwhile.
        }
        auto record = NamedRecord::parse(text.value());
        if (record.has_value() && path_of(record.value().name) == at->path().string()) {
            found.push_back(std::move(record).value());
        }
    }
    if (error) {
        return Error::from_errno(error.value(), "readdir(" + names() + ")");
    }
    std::sort(found.begin(), found.end(), [](const NamedRecord& one, const NamedRecord& other) {
        return one.name < other.name;
    });
    return found;
}

Result<std::vector<NamedEnvironment>> EnvironmentStore::list() const {
    BOOST_OUTCOME_TRY(auto found, records());
    BOOST_OUTCOME_TRY(const auto images, images_.list());
    std::vector<NamedEnvironment> environments;
    for (NamedRecord& record : found) {
        NamedEnvironment environment{std::move(record), std::nullopt, false};
        for (const image::StoredImage& stored : images) {
            if (stored.record.digest == environment.record.digest) {
                environment.image = stored.record;
                environment.in_use = stored.in_use;
            }
        }
        environments.push_back(std::move(environment));
    }
    return environments;
}

Result<NamedEnvironment> EnvironmentStore::find(const std::string& name) const {
    BOOST_OUTCOME_TRY(check_name(name));
    BOOST_OUTCOME_TRY(auto environments, list());
    for (NamedEnvironment& environment : environments) {
        if (environment.record.name == name) {
            return std::move(environment);
        }
    }
    return Error(
        ErrorCode::kNotFound,
        "there is no environment " + name,
        "\"cellkeep env list\" lists them.");
}

Result<image::ImageInUse> EnvironmentStore::use(const NamedEnvironment& environment) {
    const std::string& name = environment.record.name;
    const std::string again = "Remove it (cellkeep env remove " + name + ") and create it again.";
    if (!environment.image) {
        return Error(
            ErrorCode::kNotFound, "its files were damaged and are not there any more", again);
    }
    auto used = images_.use(*environment.image);
    if (used.has_error() && used.error().code() == ErrorCode::kProtocol) {
        return std::move(used).error().with_hint(again);
    }
    return used;
}

Status EnvironmentStore::check_new(const std::string& name) const {
    BOOST_OUTCOME_TRY(const auto found, records());
    if (std::any_of(found.begin(), found.end(), [&name](const NamedRecord& record) {
            return record.name == name;
        })) {
        return Error(
            ErrorCode::kConflict,
            "there is an environment " + name + " already",
            "Remove it first (cellkeep env remove " + name + "), or choose another name.");
    }
    if (found.size() >= bounds_.count) {
        return Error(
            ErrorCode::kLimitExceeded,
            "there are " + std::to_string(bounds_.count) + " environments, and more are not kept",
            "Remove one: cellkeep env list shows them, cellkeep env remove NAME removes one.");
    }
    return ok();
}

Result<NamedRecord> EnvironmentStore::build(
    const EnvironmentOrder& order,
    const std::vector<std::string>& requirements,
    const std::string& scratch,
    const image::Progress& progress) {
    const std::string tree = scratch + kImageFolder;
    const std::string interpreter = scratch + kInterpreterFolder;
    const auto deadline = std::chrono::steady_clock::now() + bounds_.time;
    BOOST_OUTCOME_TRY(
        const PythonProgram python,
        with_context(find_python(order.python, order.folders, scratch), "--python"));
    if (python.brought) {
        progress("copying " + python.program + ", CPython " + python.version);
        BOOST_OUTCOME_TRY(copy_interpreter(python, interpreter, bounds_.bytes));
    }
    BOOST_OUTCOME_TRY(make_empty_environment(tree, python));
    InstallOrder install{order.uv, tree, scratch, order.index, requirements, {}, deadline, 0};
    add_kernel_packages(python, install.requirements);
    install.bytes_max = bounds_.bytes * kBuildBytesFactor;
    BOOST_OUTCOME_TRY(install.constraints, kernel_constraints(order.default_packages, python));
    if (python.brought && !order.sources.empty()) {
        return Error(
            ErrorCode::kInvalidArgument,
            "--build-sdists: sources are built with Debian's Python only",
            "Leave out --python, or build a wheel and put it into an index of yours.");
    }
    BOOST_OUTCOME_TRY(build_sources(order, progress, install));
    progress("installing packages from " + shown_index(order.index));
    BOOST_OUTCOME_TRY(install_packages(install));
    progress("making the environment of them");
    BOOST_OUTCOME_TRY(finish_environment(
        {tree, interpreter, deadline, bounds_.bytes, order.kernel_package}, python));
    NamedRecord record;
    record.name = order.name;
    record.python = python.version;
    record.index = shown_index(order.index);
    record.requirements = requirements;
    BOOST_OUTCOME_TRY(const Distributions installed, find_distributions(packages_of(tree, python)));
    for (const auto& [name, distribution] : installed) {
        record.packages.emplace(name, distribution.version);
    }
    BOOST_OUTCOME_TRY(note_built(order, record));
    image::Recipe recipe;
    recipe.kind = image::Kind::kEnvironment;
    // Of its own each time: what the index has for the same requirements is another thing tomorrow.
    BOOST_OUTCOME_TRY(recipe.fingerprint, random_hex(kFingerprintBytes));
    recipe.copies = {{image::Copy::How::kTree, tree, std::string(kImageFolder).substr(1)}};
    if (python.brought) {
        recipe.copies.push_back(
            {image::Copy::How::kTree, interpreter, std::string(kInterpreterFolder).substr(1)});
    }
    BOOST_OUTCOME_TRY(const auto held, hold_images(images_));
    BOOST_OUTCOME_TRY(
        const image::ImageRecord made, images_.build(recipe, image::Format::kTree, progress));
    record.digest = made.digest;
    record.bytes = made.bytes;
    record.created_at = to_iso8601(std::chrono::system_clock::now());
    return record;
}

Result<NamedRecord> EnvironmentStore::create(
    const EnvironmentOrder& order, const image::Progress& progress) {
    BOOST_OUTCOME_TRY(check_name(order.name));
    BOOST_OUTCOME_TRY(check_index(order.index));
    BOOST_OUTCOME_TRY(
        const auto requirements,
        with_context(parse_requirements(order.requirements), "requirements"));
    BOOST_OUTCOME_TRY(const UniqueFd held, lock());
    BOOST_OUTCOME_TRY(check_new(order.name));
    BOOST_OUTCOME_TRY(remove_left_over(directory_));
    BOOST_OUTCOME_TRY(const std::string random, random_hex(kRandomBytes));
    const image::Scratch scratch(directory_ + "/" + kBuilding + random);
    if (::mkdir(scratch.path().c_str(), S_IRWXU) < 0) {
        return Error::from_errno(errno, "mkdir(" + scratch.path() + ")");
    }
    BOOST_OUTCOME_TRY(
        NamedRecord record,
        with_context(
            build(order, requirements, scratch.path(), progress), "environment " + order.name));
    BOOST_OUTCOME_TRY(
        write_file_atomically(path_of(order.name), record.to_json(), S_IRUSR | S_IWUSR));
    return record;
}

Status EnvironmentStore::remove(const std::string& name) {
    BOOST_OUTCOME_TRY(const UniqueFd held, lock());
    BOOST_OUTCOME_TRY(const NamedEnvironment found, find(name));
    BOOST_OUTCOME_TRY(const auto all, records());
    const bool shared = std::any_of(all.begin(), all.end(), [&](const NamedRecord& other) {
        return other.name != name && other.digest == found.record.digest;
    });
    const Status gone = found.image && !shared ? images_.remove(*found.image) : Status(ok());
    const bool held_by_server = gone.has_error() && gone.error().code() == ErrorCode::kConflict;
    // A server that has the files for another name has them for this one, too: it offers both.
    if (held_by_server || (shared && found.in_use)) {
        return Error(
            ErrorCode::kConflict,
            "the environment " + name + " is in use",
            "Stop the server that has it, or start it again after the removal.");
    }
    BOOST_OUTCOME_TRY(gone);
    return ::unlink(path_of(name).c_str()) == 0
               ? Status(ok())
               : Error::from_errno(errno, "remove(" + path_of(name) + ")");
}

}  // namespace cellkeep::environments
