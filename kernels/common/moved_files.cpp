// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/moved_files.hpp"

#include "kernels/common/shared_mappings.hpp"
#include "protocol/support/syscall.hpp"
#include "sandbox/inside/copy/proc_reader.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

namespace cellkeep::kernels {

namespace {

constexpr const char* kWorkspace = "/workspace";
constexpr std::size_t kUsualDescriptors = 128;
/// Those with which the same file would be another one, or be made anew.
constexpr int kFlagsOfOpening = O_CREAT | O_EXCL | O_TRUNC;

std::vector<int> list_descriptors() {
    const UniqueFd directory(::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    std::vector<int> numbers(kUsualDescriptors);
    ssize_t count = sandbox::list_numbers(directory.get(), numbers);
    while (count > static_cast<ssize_t>(numbers.size())) {
        numbers.resize(static_cast<std::size_t>(count));
        count = sandbox::list_numbers(directory.get(), numbers);
    }
    numbers.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return numbers;
}

/// Pipes and sockets are between processes, and the kernel's own are new already.
bool has_path(const struct stat& info) {
    return S_ISREG(info.st_mode) || S_ISDIR(info.st_mode);
}

void open_anew(int fd) {
    struct stat info {};
    const int flags = ::fcntl(fd, F_GETFL);
    const int own = ::fcntl(fd, F_GETFD);
    if (::fstat(fd, &info) < 0 || flags < 0 || own < 0 || !has_path(info)) {
        return;
    }
    std::error_code error;  // an empty path then, which opens nothing
    const auto path =
        std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error).string();
    const off_t position = ::lseek(fd, 0, SEEK_CUR);
    UniqueFd opened(::open(path.c_str(), (flags & ~kFlagsOfOpening) | O_CLOEXEC | O_NOFOLLOW));
    if (!opened) {
        opened = UniqueFd(::open("/dev/null", (flags & O_ACCMODE) | O_CLOEXEC));
    }
    // Ignored, here and below: a descriptor that cannot be replaced is closed.
    if (!opened || ::dup3(opened.get(), fd, (own & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0) < 0) {
        (void)::close(fd);
    } else if (S_ISREG(info.st_mode) && position > 0) {
        (void)::lseek(fd, position, SEEK_SET);
    }
}

/// The same bytes at the same place, which no other process sees.
void make_own(const SharedMapping& mapping) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel gives the address as a number.
    auto* const place = reinterpret_cast<void*>(mapping.begin);
    void* const copy =
        ::mmap(nullptr, mapping.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) {
        return;
    }
    // By a system call, which says so where a mapping has no page behind it (a file that is
    // shorter): the rest stays empty.
    int ends[2];
    std::size_t done = 0;
    if (::pipe2(ends, O_CLOEXEC) == 0) {
        constexpr std::size_t kPiece = 4096;
        while (done < mapping.bytes) {
            const char* const from = static_cast<const char*>(place) + done;
            const ssize_t put = ::write(ends[1], from, std::min(kPiece, mapping.bytes - done));
            if (put <= 0 ||
                ::read(ends[0], static_cast<char*>(copy) + done, static_cast<std::size_t>(put)) !=
                    put) {
                break;
            }
            done += static_cast<std::size_t>(put);
        }
        (void)::close(ends[0]);
        (void)::close(ends[1]);
    }
    if (::mremap(copy, mapping.bytes, mapping.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place) ==
        MAP_FAILED) {
        (void)::munmap(copy, mapping.bytes);
        return;
    }
    (void)::mprotect(place, mapping.bytes, mapping.protection);
}

}  // namespace

std::string current_directory() {
    std::error_code error;
    const std::string path = std::filesystem::current_path(error).string();
    return error || path.empty() ? kWorkspace : path;
}

void take_own_files(const std::string& directory) {
    for (const SharedMapping& mapping : list_shared_mappings()) {
        make_own(mapping);
    }
    for (const int fd : list_descriptors()) {
        open_anew(fd);
    }
    if (::chdir(directory.c_str()) < 0 && ::chdir(kWorkspace) < 0) {
        (void)::fprintf(stderr, "cellkeep kernel: the working directory is gone\n");
    }
}

}  // namespace cellkeep::kernels
