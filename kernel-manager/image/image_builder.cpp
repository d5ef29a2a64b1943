// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/image_builder.hpp"

#include "kernel-manager/image/file_digest.hpp"
#include "kernel-manager/image/image_mount.hpp"
#include "kernel-manager/image/image_verify.hpp"
#include "kernel-manager/image/tree_writer.hpp"
#include "protocol/support/syscall.hpp"
#include "protocol/support/time.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

namespace cellkeep::image {

namespace fs = std::filesystem;

namespace {

constexpr const char* kTool = "mkfs.erofs";
constexpr std::size_t kToolOutputBytesMax = 1ULL << 20U;
constexpr std::size_t kToolTailBytes = 400;
/// Progress is reported after each of these many bytes: about six times for an environment.
constexpr std::uint64_t kToldBytes = 256ULL << 20U;

/// In PATH or where Debian puts what administrators run; "" if it is not installed.
std::string find_tool() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): at start, before any other thread exists.
    const char* path = std::getenv("PATH");
    std::string folders = std::string(path == nullptr ? "" : path) + ":/usr/sbin:/usr/bin:/sbin";
    std::size_t begin = 0;
    while (begin <= folders.size()) {
        const std::size_t end = std::min(folders.find(':', begin), folders.size());
        const std::string folder = folders.substr(begin, end - begin);
        std::string program = folder + "/" + kTool;
        if (folder.starts_with('/') && ::access(program.c_str(), X_OK) == 0) {
            return program;
        }
        begin = end + 1;
    }
    return {};
}

/// Runs a program with its output in a file. Its environment is this process's.
Status run_tool(std::vector<std::string> command, const std::string& output) {
    std::vector<char*> argv;
    argv.reserve(command.size() + 1);
    for (std::string& word : command) {
        argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    if (const int error = ::posix_spawn_file_actions_init(&actions); error != 0) {
        return Error::from_errno(error, "posix_spawn_file_actions_init");
    }
    int error = ::posix_spawn_file_actions_addopen(
        &actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, S_IRUSR | S_IWUSR);
    if (error == 0) {
        error = ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
    }
    pid_t pid = -1;
    if (error == 0) {
        error = ::posix_spawn(&pid, command[0].c_str(), &actions, nullptr, argv.data(), environ);
    }
    (void)::posix_spawn_file_actions_destroy(&actions);  // Ignored: cannot fail.
    if (error != 0) {
        return Error::from_errno(error, "spawn(" + command[0] + ")");
    }
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return Error::from_errno(errno, "waitpid(" + command[0] + ")");
        }
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return ok();
    }
    const auto said = read_file(output, kToolOutputBytesMax);
    const std::string text = said.has_value() ? said.value() : "";
    return Error(
        ErrorCode::kSystem,
        command[0] + " failed: " +
            text.substr(text.size() > kToolTailBytes ? text.size() - kToolTailBytes : 0));
}

Status make_file(const std::string& directory, ImageRecord& record) {
    const std::string tool = find_tool();
    const std::string file = directory + "/" + kFileName;
    const std::string tree = directory + "/" + kTreeName;
    const std::string output = directory + "/mkfs.log";
    // Owners and attributes are no part of the image; time stamps are (manifest.hpp).
    BOOST_OUTCOME_TRY(run_tool({tool, "-zlz4", "-x-1", "--all-root", file, tree}, output));
    std::error_code error;
    fs::remove_all(tree, error);
    if (!error) {
        fs::remove(output, error);
    }
    if (error) {
        return Error::from_errno(error.value(), "remove(" + tree + ")");
    }
    BOOST_OUTCOME_TRY(const UniqueFd image, open_file(file, O_RDONLY | O_NOFOLLOW));
    if (::fchmod(image.get(), S_IRUSR) < 0 || ::fsync(image.get()) < 0) {
        return Error::from_errno(errno, "fsync(" + file + ")");
    }
    BOOST_OUTCOME_TRY(record.file_sha256, sha256_of_file(image.get()));
    std::error_code ignored;  // Ignored: the file is there, it was just read.
    record.bytes = fs::file_size(file, ignored);
    return ok();
}

Status sync_directory(const std::string& directory) {
    BOOST_OUTCOME_TRY(const UniqueFd folder, open_file(directory, O_RDONLY | O_DIRECTORY));
    return ::syncfs(folder.get()) < 0 ? Error::from_errno(errno, "syncfs(" + directory + ")")
                                      : Status(ok());
}

}  // namespace

bool can_build_erofs() {
    return !find_tool().empty() && can_mount_erofs();
}

Result<ImageRecord> build_image(
    const std::string& directory, const Recipe& recipe, Format format, const Progress& progress) {
    const std::string tree = directory + "/" + kTreeName;
    const std::string mount_point = directory + "/" + kMountName;
    const std::string file = directory + "/" + kFileName;
    if ((::mkdir(tree.c_str(), 0755) < 0 && errno != EEXIST) ||
        (::mkdir(mount_point.c_str(), S_IRWXU) < 0 && errno != EEXIST) ||
        (::unlink(file.c_str()) < 0 && errno != ENOENT)) {
        return Error::from_errno(errno, "mkdir(" + tree + ")");
    }
    // Its time is that of the last use.
    BOOST_OUTCOME_TRY(
        open_file(directory + "/" + kUseName, O_RDWR | O_CREAT | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    BOOST_OUTCOME_TRY(TreeWriter writer, TreeWriter::create(tree));
    writer.watch(kToldBytes, [&progress](std::uint64_t bytes) {
        progress("copied " + std::to_string(bytes >> 20U) + " MiB");
    });
    BOOST_OUTCOME_TRY(copy_all(recipe, writer));
    BOOST_OUTCOME_TRY(writer.remove_others());
    const Manifest& manifest = writer.manifest();
    ImageRecord record;
    record.digest = manifest.digest();
    record.kind = recipe.kind;
    record.format = format;
    record.fingerprint = recipe.fingerprint;
    record.origin = recipe.origin;
    record.packages = recipe.packages;
    record.bytes = manifest.bytes();
    record.built_at = to_iso8601(std::chrono::system_clock::now());
    if (format == Format::kErofs) {
        progress(
            "packing " + std::to_string(manifest.entries.size()) + " entries, " +
            std::to_string(manifest.bytes() >> 20U) + " MiB");
        BOOST_OUTCOME_TRY(make_file(directory, record));
    }
    BOOST_OUTCOME_TRY(write_file_atomically(
        directory + "/" + kManifestName, manifest.to_text(), S_IRUSR | S_IWUSR));
    if (format == Format::kTree) {
        BOOST_OUTCOME_TRY(sync_directory(directory));
    }
    BOOST_OUTCOME_TRY(record.identity, identity_of(directory, format, manifest));
    BOOST_OUTCOME_TRY(
        write_file_atomically(directory + "/" + kRecordName, record.to_json(), S_IRUSR | S_IWUSR));
    return record;
}

}  // namespace cellkeep::image
