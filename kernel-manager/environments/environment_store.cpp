// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/environment_store.hpp"

#include "kernel-manager/environments/environment_build.hpp"
#include "kernel-manager/environments/lock_file.hpp"
#include "kernel-manager/environments/name.hpp"
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
#include <iterator>
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
constexpr std::size_t kRandomBytes = 8;

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

Error in_use(const std::string& name) {
    return {
        ErrorCode::kConflict,
        "the environment " + name + " is in use",
        "Stop the server that has it, and start it again afterwards."};
}

/// What it asks for.
Result<std::vector<std::string>> check_order(const EnvironmentOrder& order) {
    BOOST_OUTCOME_TRY(check_index(order.index));
    BOOST_OUTCOME_TRY(with_context(check_index(order.node.registry), "--npm-registry"));
    BOOST_OUTCOME_TRY(with_context(check_debian_packages(order.debian.packages), "--apt"));
    const bool has_others = !order.node.dependencies.empty() || !order.debian.packages.empty();
    if (order.requirements.empty() && has_others) {
        return std::vector<std::string>{};
    }
    return with_context(
        parse_requirements(
            order.requirements, order.locked ? kLockLinesBytesMax : kRequirementsBytesMax),
        "requirements");
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

/// Of a build that was killed before its name was written, and of what was replaced. One that a
/// server has stays until the next time.
Status EnvironmentStore::remove_unnamed_images() {
    BOOST_OUTCOME_TRY(const auto named, records());
    std::error_code error;
    const auto files =
        std::distance(fs::directory_iterator(names(), error), fs::directory_iterator());
    if (error || static_cast<std::size_t>(files) != named.size()) {
        return ok();  // one that cannot be read may name any image
    }
    BOOST_OUTCOME_TRY(const auto all, images_.list());
    for (const image::StoredImage& stored : all) {
        const bool has_name =
            std::any_of(named.begin(), named.end(), [&stored](const NamedRecord& record) {
                return record.digest == stored.record.digest;
            });
        if (has_name || stored.in_use) {
            continue;
        }
        if (Status gone = images_.remove(stored.record);
            gone.has_error() && gone.error().code() != ErrorCode::kConflict) {
            return gone;
        }
    }
    return ok();
}

/// The caller has the lock.
Result<NamedRecord> EnvironmentStore::make(
    const EnvironmentOrder& order,
    const std::vector<std::string>& requirements,
    const image::Progress& progress) {
    BOOST_OUTCOME_TRY(remove_left_over(directory_));
    BOOST_OUTCOME_TRY(remove_unnamed_images());
    BOOST_OUTCOME_TRY(const std::string random, random_hex(kRandomBytes));
    const image::Scratch scratch(directory_ + "/" + kBuilding + random);
    if (::mkdir(scratch.path().c_str(), S_IRWXU) < 0) {
        return Error::from_errno(errno, "mkdir(" + scratch.path() + ")");
    }
    const std::string what = "environment " + order.name;
    BOOST_OUTCOME_TRY(
        BuiltEnvironment built,
        with_context(
            build_environment(order, requirements, bounds_, scratch.path(), progress), what));
    BOOST_OUTCOME_TRY(const auto held, hold_images(images_));
    BOOST_OUTCOME_TRY(
        const image::ImageRecord made,
        with_context(images_.build(built.recipe, image::Format::kTree, progress), what));
    built.record.digest = made.digest;
    built.record.bytes = made.bytes;
    built.record.created_at = to_iso8601(std::chrono::system_clock::now());
    const std::string text = built.record.to_json();
    if (text.size() > kNamedRecordBytesMax) {
        return Error(
            ErrorCode::kLimitExceeded, what + ": what is noted of it would be too long to be read");
    }
    BOOST_OUTCOME_TRY(write_file_atomically(path_of(order.name), text, S_IRUSR | S_IWUSR));
    return std::move(built.record);
}

Result<NamedRecord> EnvironmentStore::create(
    const EnvironmentOrder& order, const image::Progress& progress) {
    BOOST_OUTCOME_TRY(check_name(order.name));
    BOOST_OUTCOME_TRY(const auto requirements, check_order(order));
    BOOST_OUTCOME_TRY(const UniqueFd held, lock());
    BOOST_OUTCOME_TRY(check_new(order.name));
    return make(order, requirements, progress);
}

Result<NamedRecord> EnvironmentStore::replace(
    const EnvironmentOrder& order, const image::Progress& progress) {
    BOOST_OUTCOME_TRY(const auto requirements, check_order(order));
    BOOST_OUTCOME_TRY(const UniqueFd held, lock());
    BOOST_OUTCOME_TRY(const NamedEnvironment former, find(order.name));
    if (former.in_use) {
        return in_use(order.name);
    }
    if (!order.replaces.empty() && former.record.created_at != order.replaces) {
        return Error(
            ErrorCode::kConflict,
            "the environment " + order.name + " was made by another process meanwhile",
            "Look at it (cellkeep env show " + order.name + "), and try again.");
    }
    BOOST_OUTCOME_TRY(NamedRecord record, make(order, requirements, progress));
    (void)remove_unnamed_images().has_value();  // Ignored: the next build removes them.
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
        return in_use(name);
    }
    BOOST_OUTCOME_TRY(gone);
    return ::unlink(path_of(name).c_str()) == 0
               ? Status(ok())
               : Error::from_errno(errno, "remove(" + path_of(name) + ")");
}

}  // namespace cellkeep::environments
