// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/image_store.hpp"

#include "kernel-manager/image/image_mount.hpp"
#include "kernel-manager/image/image_scratch.hpp"
#include "kernel-manager/image/image_verify.hpp"
#include "kernel-manager/image/store_lock.hpp"
#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace cellkeep::image {

namespace fs = std::filesystem;

namespace {

constexpr const char* kListLock = "lock";
constexpr const char* kBuildLock = "build-lock";
constexpr const char* kProgramsBuildLock = "programs-build-lock";
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

std::string name_of(const ImageRecord& record) {
    return std::string(to_string(record.kind)) + "-" + std::string(to_string(record.format)) + "-" +
           record.digest.substr(record.digest.find(':') + 1);
}

/// The epoch if that cannot be read.
std::chrono::system_clock::time_point last_use(const std::string& directory) {
    struct stat info {};
    if (::stat((directory + "/" + kUseName).c_str(), &info) != 0) {
        return {};
    }
    return std::chrono::system_clock::time_point(
        std::chrono::seconds(info.st_mtim.tv_sec) + std::chrono::nanoseconds(info.st_mtim.tv_nsec));
}

/// Where an image file's contents show, mounted if they do not yet.
Status mount_image(const std::string& directory) {
    const std::string mount_point = directory + "/" + kMountName;
    struct stat outside {};
    struct stat inside {};
    if (::lstat(directory.c_str(), &outside) < 0 || ::lstat(mount_point.c_str(), &inside) < 0) {
        return Error::from_errno(errno, "stat(" + mount_point + ")");
    }
    if (outside.st_dev != inside.st_dev) {
        return ok();  // This process has mounted it before.
    }
    BOOST_OUTCOME_TRY(
        const UniqueFd file, open_file(directory + "/" + kFileName, O_RDONLY | O_NOFOLLOW));
    return mount_erofs(file.get(), mount_point);
}

}  // namespace

Result<std::string> default_store_directory() {
    // Read once at start, before any other thread exists, hence:
    // NOLINTBEGIN(concurrency-mt-unsafe)
    const std::pair<const char*, const char*> places[] = {
        {std::getenv("CELLKEEP_IMAGE_DIR"), ""},
        {std::getenv("XDG_CACHE_HOME"), "/cellkeep/images"},
        {std::getenv("HOME"), "/.cache/cellkeep/images"}};
    // NOLINTEND(concurrency-mt-unsafe)
    for (const auto& [value, below] : places) {
        if (value != nullptr && value[0] == '/') {
            return std::string(value) + below;
        }
    }
    return Error(
        ErrorCode::kInvalidArgument,
        "there is no place for environment images",
        "Set CELLKEEP_IMAGE_DIR, XDG_CACHE_HOME or HOME.");
}

Result<Store> Store::open(const std::string& directory) {
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
    if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & kOthers) != 0) {
        return Error(
            ErrorCode::kPermissionDenied,
            directory + " is no directory of this user alone",
            "Set CELLKEEP_IMAGE_DIR to one, or: chmod 700 " + directory);
    }
    // The sandbox's launcher and the check of the control compare whole paths.
    const fs::path real = fs::canonical(directory, error);
    if (error) {
        return Error::from_errno(error.value(), "realpath(" + directory + ")");
    }
    return Store(real.string());
}

std::string Store::directory_of(const ImageRecord& record) const {
    return directory_ + "/" + name_of(record);
}

Result<UniqueFd> Store::lock(const char* name) const {
    BOOST_OUTCOME_TRY(UniqueFd file, open_lock(directory_ + "/" + name));
    BOOST_OUTCOME_TRY(lock_file(file.get(), LOCK_EX));
    return file;
}

Result<std::vector<ImageRecord>> Store::records() const {
    std::vector<std::pair<std::chrono::system_clock::time_point, ImageRecord>> found;
    std::error_code error;
    for (fs::directory_iterator at(directory_, error), end; !error && at != end;
         at.increment(error)) {
        const std::string path = at->path().string();
        auto record = load_record(path);
        if (record.has_value() && directory_of(record.value()) == path) {
            found.emplace_back(last_use(path), std::move(record).value());
        }
    }
    if (error) {
        return Error::from_errno(error.value(), "readdir(" + directory_ + ")");
    }
    std::sort(
        found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<ImageRecord> records;
    records.reserve(found.size());
    for (auto& [when, record] : found) {
        records.push_back(std::move(record));
    }
    return records;
}

Result<std::vector<StoredImage>> Store::list() const {
    // What only looks leaves no lock where nothing is. An image appears in one step, so there was
    // none.
    std::error_code error;
    if (fs::is_empty(directory_, error) && !error) {
        return std::vector<StoredImage>();
    }
    BOOST_OUTCOME_TRY(const UniqueFd held, lock(kListLock));
    BOOST_OUTCOME_TRY(auto found, records());
    std::vector<StoredImage> images;
    for (ImageRecord& record : found) {
        const std::string directory = directory_of(record);
        BOOST_OUTCOME_TRY(const auto unused, claim_unused(directory));
        images.push_back({std::move(record), !unused.has_value(), last_use(directory)});
    }
    return images;
}

Status Store::note_recipe(const ImageRecord& record, const RecipeKey& recipe) {
    BOOST_OUTCOME_TRY(const UniqueFd held, lock(kListLock));
    const std::string place = directory_of(record);
    BOOST_OUTCOME_TRY(ImageRecord now, load_record(place));
    now.note_recipe({recipe.fingerprint, recipe.origin});
    return write_file_atomically(place + "/" + kRecordName, now.to_json(), S_IRUSR | S_IWUSR);
}

Result<std::optional<ImageRecord>> Store::find_same_origin(
    const RecipeKey& recipe, Format format) const {
    BOOST_OUTCOME_TRY(const UniqueFd held, lock(kListLock));
    BOOST_OUTCOME_TRY(const auto found, records());
    std::optional<ImageRecord> newest;
    for (const ImageRecord& record : found) {
        if (record.comes_from(recipe.origin) && record.kind == recipe.kind &&
            record.format == format && (!newest || newest->built_at < record.built_at)) {
            newest = record;
        }
    }
    return newest;
}

Result<std::optional<ImageRecord>> Store::find(const RecipeKey& recipe, Format format) const {
    BOOST_OUTCOME_TRY(const UniqueFd held, lock(kListLock));
    BOOST_OUTCOME_TRY(const auto found, records());
    for (const ImageRecord& record : found) {
        if (record.kind == recipe.kind && record.format == format &&
            record.made_by(recipe.fingerprint)) {
            return std::optional(record);
        }
    }
    return std::optional<ImageRecord>();
}

Result<ImageRecord> Store::find(const std::string& digest, std::optional<Kind> kind) const {
    const std::string wanted = digest.starts_with("sha256:") ? digest : "sha256:" + digest;
    BOOST_OUTCOME_TRY(const UniqueFd held, lock(kListLock));
    BOOST_OUTCOME_TRY(const auto found, records());
    std::vector<const ImageRecord*> fitting;
    for (const ImageRecord& record : found) {
        if (!digest.empty() && record.digest.starts_with(wanted) &&
            (!kind || record.kind == *kind)) {
            fitting.push_back(&record);
        }
    }
    if (fitting.empty()) {
        return Error(
            ErrorCode::kNotFound,
            "there is no image " + digest,
            "\"cellkeep image list\" lists them.");
    }
    if (fitting.size() > 1 && fitting[0]->digest != fitting[1]->digest) {
        return Error(ErrorCode::kConflict, "more than one image begins with " + digest);
    }
    return *fitting[0];
}

Result<ImageInUse> Store::use(const ImageRecord& record) {
    const std::string directory = directory_of(record);
    UniqueFd lease;
    {
        BOOST_OUTCOME_TRY(const UniqueFd held, lock(kListLock));
        BOOST_OUTCOME_TRY(lease, open_lock(directory + "/" + kUseName));
        BOOST_OUTCOME_TRY(lock_file(lease.get(), LOCK_SH));
    }
    BOOST_OUTCOME_TRY(ImageRecord now, load_record(directory));
    Status verified = verify(directory, now);
    if (verified.has_error()) {
        lease.reset();
        if (remove(record).has_error()) {
            // Another server still uses it, and no other may begin to. Ignored: the next one that
            // opens the image finds the same damage.
            (void)::rename(
                (directory + "/" + kRecordName).c_str(),
                (directory + "/" + kDamagedRecord).c_str());
        }
        return std::move(verified).error();
    }
    // Ignored: the order in which images are removed would be another.
    (void)::futimens(lease.get(), nullptr);
    ImageInUse image{
        now,
        directory + "/" + (now.format == Format::kErofs ? kMountName : kTreeName),
        std::make_shared<const UniqueFd>(std::move(lease))};
    if (now.format == Format::kErofs) {
        BOOST_OUTCOME_TRY(mount_image(directory));
    }
    return image;
}

Status Store::take_in(const std::string& built, const ImageRecord& record) {
    BOOST_OUTCOME_TRY(const UniqueFd held, lock(kListLock));
    const std::string place = directory_of(record);
    if (::rename(built.c_str(), place.c_str()) == 0) {
        return ok();
    }
    if (errno != ENOTEMPTY && errno != EEXIST) {
        return Error::from_errno(errno, "rename(" + place + ")");
    }
    // The same contents, by another recipe or at another time.
    auto there = load_record(place);
    if (there.has_error() || verify(place, there.value()).has_error()) {
        BOOST_OUTCOME_TRY(const auto claimed, claim_unused(place));
        if (!claimed) {
            return Error(
                ErrorCode::kConflict,
                "the image " + record.digest + " is damaged, and another server uses it",
                "Stop that server, or set CELLKEEP_IMAGE_DIR to another place.");
        }
        BOOST_OUTCOME_TRY(remove_tree(place));
        return ::rename(built.c_str(), place.c_str()) == 0
                   ? Status(ok())
                   : Error::from_errno(errno, "rename(" + place + ")");
    }
    there.value().note_recipe({record.fingerprint, record.origin});
    there.value().packages = record.packages;
    return write_file_atomically(
        place + "/" + kRecordName, there.value().to_json(), S_IRUSR | S_IWUSR);
}

Result<ImageRecord> Store::build(const Recipe& recipe, Format format, const Progress& progress) {
    const char* const name = recipe.kind == Kind::kPrograms ? kProgramsBuildLock : kBuildLock;
    BOOST_OUTCOME_TRY(const UniqueFd file, open_lock(directory_ + "/" + name));
    BOOST_OUTCOME_TRY(const bool at_once, lock_file(file.get(), LOCK_EX | LOCK_NB));
    if (!at_once) {
        progress("waiting for another process, which is making an image");
        BOOST_OUTCOME_TRY(lock_file(file.get(), LOCK_EX));
    }
    BOOST_OUTCOME_TRY(const auto made, find(recipe, format));
    if (made) {
        return *made;
    }
    BOOST_OUTCOME_TRY(const std::string unfinished, scratch_name(recipe, format));
    std::error_code error;
    for (fs::directory_iterator at(directory_, error), end; !error && at != end;
         at.increment(error)) {
        BOOST_OUTCOME_TRY(remove_dead(at->path().string(), recipe.kind, unfinished));
    }
    const Scratch scratch(directory_ + "/" + unfinished);
    if (::mkdir(scratch.path().c_str(), S_IRWXU) < 0) {
        if (errno != EEXIST) {
            return Error::from_errno(errno, "mkdir(" + scratch.path() + ")");
        }
        progress("going on with what an interrupted build has copied");
    }
    auto record = build_image(scratch.path(), recipe, format, progress);
    if (record.has_error()) {
        const bool full = record.error().errno_value() == ENOSPC;
        return std::move(record)
            .error()
            .with_context("make the image")
            .with_hint(
                full ? "Free space, or set CELLKEEP_IMAGE_DIR to a place that has some." : "");
    }
    BOOST_OUTCOME_TRY(take_in(scratch.path(), record.value()));
    BOOST_OUTCOME_TRY(collect_garbage());
    return record;
}

Status Store::remove(const ImageRecord& record) {
    BOOST_OUTCOME_TRY(const UniqueFd held, lock(kListLock));
    const std::string directory = directory_of(record);
    BOOST_OUTCOME_TRY(const auto claimed, claim_unused(directory));
    if (!claimed) {
        return Error(ErrorCode::kConflict, "the image " + record.digest + " is in use");
    }
    // Out of the list at once, whatever comes in between; a build removes the rest.
    BOOST_OUTCOME_TRY(const std::string name, trash_name());
    const std::string trash = directory_ + "/" + name;
    if (::rename(directory.c_str(), trash.c_str()) < 0) {
        return Error::from_errno(errno, "rename(" + directory + ")");
    }
    return remove_tree(trash);
}

Result<std::size_t> Store::remove_unused() {
    BOOST_OUTCOME_TRY(const auto images, list());
    std::size_t removed = 0;
    for (const StoredImage& image : images) {
        if (image.in_use) {
            continue;
        }
        const Status gone = remove(image.record);
        if (gone.has_error() && gone.error().code() != ErrorCode::kConflict) {
            return gone.error();
        }
        removed += gone.has_value() ? 1U : 0U;
    }
    return removed;
}

Status Store::collect_garbage() {
    BOOST_OUTCOME_TRY(const auto images, list());
    for (const StoredImage& image : images_to_remove(images, std::chrono::system_clock::now())) {
        const Status gone = remove(image.record);
        // Another process may have begun to use it.
        if (gone.has_error() && gone.error().code() != ErrorCode::kConflict) {
            return gone.error();
        }
    }
    return ok();
}

}  // namespace cellkeep::image
