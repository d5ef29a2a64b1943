// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/debian/tar_reader.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace cellkeep::environments {

namespace {

constexpr std::size_t kBlock = 512;
using Block = std::array<char, kBlock>;

struct TarField {
    std::size_t offset;
    std::size_t size;
};
// tar(5), "POSIX ustar Archives".
constexpr TarField kTarName{0, 100};
constexpr TarField kTarMode{100, 8};
constexpr TarField kTarSize{124, 12};
constexpr TarField kTarTime{136, 12};
constexpr TarField kTarSum{148, 8};
constexpr std::size_t kTarType = 156;
constexpr TarField kTarLink{157, 100};
constexpr TarField kTarMagic{257, 8};
constexpr TarField kTarPrefix{345, 155};
constexpr std::string_view kPosixMagic("ustar\00000", 8);
constexpr mode_t kPermissions = 07777;

Error bad_tar(const std::string& what) {
    return {ErrorCode::kProtocol, "archive of a package: " + what};
}

std::string_view bytes_of(const Block& block, TarField field) {
    return std::string_view(block.data(), block.size()).substr(field.offset, field.size);
}

std::string text_of(const Block& block, TarField field) {
    const std::string_view bytes = bytes_of(block, field);
    return std::string(bytes.substr(0, bytes.find('\0')));
}

/// Octal digits, or as GNU's tar writes what does not fit these: the first bit, then the bytes.
std::optional<std::uint64_t> number_of(const Block& block, TarField field) {
    std::string_view bytes = bytes_of(block, field);
    std::uint64_t value = 0;
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
    if (static_cast<unsigned char>(bytes.front()) == 0x80U) {
        for (const char byte : bytes.substr(1)) {
            if (value > static_cast<std::uint64_t>(kMost) >> 8U) {
                return std::nullopt;
            }
            value = value << 8U | static_cast<unsigned char>(byte);
        }
        return value;
    }
    bytes = bytes.substr(0, bytes.find('\0'));
    while (!bytes.empty() && bytes.front() == ' ') {
        bytes.remove_prefix(1);
    }
    while (!bytes.empty() && bytes.back() == ' ') {
        bytes.remove_suffix(1);
    }
    for (const char digit : bytes) {
        if (digit < '0' || digit > '7') {
            return std::nullopt;
        }
        value = value << 3U | static_cast<unsigned>(digit - '0');
    }
    return value;
}

/// The sum of all bytes, those of the sum's own field as spaces.
bool has_right_sum(const Block& block) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < block.size(); ++i) {
        const bool own = i >= kTarSum.offset && i < kTarSum.offset + kTarSum.size;
        sum += static_cast<unsigned char>(own ? ' ' : block[i]);
    }
    return number_of(block, kTarSum) == sum;
}

Result<std::string> clean_path(std::string_view path) {
    const std::string all(path);
    std::string clean;
    std::size_t parts = 0;
    if (path.size() > kTarPathBytesMax || path.starts_with('/') ||
        std::any_of(path.begin(), path.end(), [](char character) {
            return static_cast<unsigned char>(character) < ' ' || character == '\x7f';
        })) {
        return bad_tar("it has a path that is absolute, too long, or of control characters");
    }
    while (!path.empty()) {
        const std::string_view part = path.substr(0, path.find('/'));
        path.remove_prefix(part.size() < path.size() ? part.size() + 1 : path.size());
        if (part == "..") {
            return bad_tar("the path " + all + " leads out of it");
        }
        if (!part.empty() && part != "." && ++parts > kTarPathPartsMax) {
            return bad_tar("a path has more than " + std::to_string(kTarPathPartsMax) + " parts");
        }
        if (!part.empty() && part != ".") {
            clean += (clean.empty() ? "" : "/") + std::string(part);
        }
    }
    return clean;
}

class TarScan {
 public:
    TarScan(int fd, std::uint64_t size) : fd_(fd), size_(size) {}
    Result<std::vector<TarEntry>> read_all();

 private:
    Status read_at(std::uint64_t offset, char* data, std::size_t size) const;
    Status take_entry(const Block& block, std::vector<TarEntry>& entries);
    Result<std::string> long_text(std::uint64_t bytes) const;

    int fd_;
    std::uint64_t size_;
    std::uint64_t at_ = 0;             // behind the last header
    std::optional<std::string> name_;  // of the next entry, if it is long
    std::optional<std::string> link_;  // likewise
};

Status TarScan::read_at(std::uint64_t offset, char* data, std::size_t size) const {
    while (size > 0) {
        const ssize_t got = ::pread(fd_, data, size, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return got < 0 ? Error::from_errno(errno, "read(archive)") : bad_tar("it ends early");
        }
        data += got;
        offset += static_cast<std::uint64_t>(got);
        size -= static_cast<std::size_t>(got);
    }
    return ok();
}

Result<std::string> TarScan::long_text(std::uint64_t bytes) const {
    if (bytes > kTarPathBytesMax + 1) {
        return bad_tar("a path of it is too long");
    }
    std::string text(bytes, '\0');
    BOOST_OUTCOME_TRY(read_at(at_, text.data(), text.size()));
    text.resize(std::min(text.find('\0'), text.size()));
    return text;
}

TarEntry::Type type_of(char flag) {
    switch (flag) {
        case '0':
        case '\0':
        case '7':  // contiguous, which is a file
            return TarEntry::Type::kFile;
        case '1':
            return TarEntry::Type::kSameFile;
        case '2':
            return TarEntry::Type::kLink;
        case '5':
            return TarEntry::Type::kDirectory;
        default:
            return TarEntry::Type::kOther;
    }
}

/// at_ is behind its header, and afterwards behind its contents.
Status TarScan::take_entry(const Block& block, std::vector<TarEntry>& entries) {
    const char flag = block[kTarType];
    const auto size = number_of(block, kTarSize);
    const auto mode = number_of(block, kTarMode);
    const auto time = number_of(block, kTarTime);
    if (!size || !mode || !time) {
        return bad_tar("a number of it is none");
    }
    const bool is_known = std::string_view("01234567LK").find(flag) != std::string_view::npos;
    if (!is_known && flag != '\0') {
        return bad_tar(std::string("it has an entry of the unknown kind ") + flag);
    }
    const bool has_contents =
        flag == '0' || flag == '\0' || flag == '7' || flag == 'L' || flag == 'K';
    const std::uint64_t contents = has_contents ? *size : 0;
    if (contents > size_ - std::min(size_, at_)) {
        return bad_tar("it ends early");
    }
    if (flag == 'L' || flag == 'K') {
        BOOST_OUTCOME_TRY(std::string text, long_text(contents));
        (flag == 'L' ? name_ : link_) = std::move(text);
    } else {
        TarEntry entry;
        entry.type = type_of(flag);
        const std::string prefix =
            bytes_of(block, kTarMagic) == kPosixMagic ? text_of(block, kTarPrefix) : std::string();
        const std::string name = text_of(block, kTarName);
        BOOST_OUTCOME_TRY(
            entry.path, clean_path(name_.value_or(prefix.empty() ? name : prefix + "/" + name)));
        entry.link = link_.value_or(text_of(block, kTarLink));
        if (entry.type == TarEntry::Type::kSameFile) {
            BOOST_OUTCOME_TRY(entry.link, clean_path(std::string(entry.link)));
        } else if (
            entry.type == TarEntry::Type::kLink &&
            (entry.link.empty() || entry.link.size() > kTarPathBytesMax)) {
            return bad_tar("the link " + entry.path + " leads nowhere");
        }
        entry.mode = static_cast<mode_t>(*mode) & kPermissions;
        entry.modified = static_cast<std::int64_t>(*time);
        entry.bytes = contents;
        entry.offset = at_;
        entries.push_back(std::move(entry));
        name_.reset();
        link_.reset();
    }
    at_ += (contents + kBlock - 1) / kBlock * kBlock;
    return ok();
}

Result<std::vector<TarEntry>> TarScan::read_all() {
    std::vector<TarEntry> entries;
    Block block{};
    while (true) {
        BOOST_OUTCOME_TRY(read_at(at_, block.data(), block.size()));
        at_ += kBlock;
        if (std::all_of(block.begin(), block.end(), [](char byte) { return byte == '\0'; })) {
            return entries;  // the end, of which there are two
        }
        if (!has_right_sum(block)) {
            return bad_tar("the sum of a header is wrong");
        }
        BOOST_OUTCOME_TRY(take_entry(block, entries));
        if (entries.size() > kTarEntriesMax) {
            return Error(
                ErrorCode::kLimitExceeded,
                "a package has more than " + std::to_string(kTarEntriesMax) + " files");
        }
    }
}

}  // namespace

Result<std::vector<TarEntry>> read_tar(int fd) {
    struct stat info {};
    if (::fstat(fd, &info) < 0) {
        return Error::from_errno(errno, "stat(archive)");
    }
    return TarScan(fd, static_cast<std::uint64_t>(info.st_size)).read_all();
}

}  // namespace cellkeep::environments
