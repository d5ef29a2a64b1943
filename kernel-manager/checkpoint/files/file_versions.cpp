// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/files/file_versions.hpp"

#include <ctime>

namespace cellkeep::checkpoint {

std::int64_t stamp_now() {
    constexpr std::int64_t kSecond = 1'000'000'000;
    timespec now{};
    (void)::clock_gettime(CLOCK_REALTIME_COARSE, &now);  // cannot fail with a known clock
    return now.tv_sec * kSecond + now.tv_nsec;
}

const std::string* FileVersions::find(
    const std::string& path, const sandbox::FileState& state) const {
    for (const auto* list : {&noted_, &known_}) {
        const auto found = list->find(path);
        if (found != list->end() && found->second.state == state &&
            blobs_.contains(found->second.digest)) {
            return &found->second.digest;
        }
    }
    return nullptr;
}

void FileVersions::note(
    const std::string& path, const sandbox::FileState& state, std::string digest) {
    if (state.changed > clock_() - kSettledNanoseconds) {
        forget(path);
        return;
    }
    noted_[path] = {state, std::move(digest)};
}

void FileVersions::drop(const Manifest& manifest) {
    for (const auto& [path, file] : manifest.files) {
        if (file.kind == sandbox::EntryKind::kFile && blobs_.contains(file.content)) {
            blobs_.drop(file.content);
        }
    }
}

Status FileVersions::hold(const Manifest& manifest) {
    for (const auto& [path, file] : manifest.files) {
        if (file.kind != sandbox::EntryKind::kFile) {
            continue;
        }
        if (blobs_.bytes_of(file.content) != file.bytes) {
            return Error(
                ErrorCode::kProtocol, "passed contents of files: a file without its contents");
        }
        blobs_.hold(file.content);
    }
    return ok();
}

}  // namespace cellkeep::checkpoint
