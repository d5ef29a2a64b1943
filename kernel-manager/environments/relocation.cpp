// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/relocation.hpp"

#include "protocol/support/syscall.hpp"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

namespace cellkeep::environments {

namespace {

constexpr std::size_t kProgramBytesMax = 256UL << 20U;

Error no_room(const std::string& program, const std::string& why) {
    return {
        ErrorCode::kInvalidArgument,
        program + " cannot be copied: " + why,
        "Take a Python that can be anywhere, such as those of \"uv python install\"."};
}

/// The thing at an offset of the file; nothing beyond its end.
template <typename T>
std::optional<T> read_at(std::string_view file, std::uint64_t offset) {
    T value{};
    if (offset > file.size() || file.size() - offset < sizeof(T)) {
        return std::nullopt;
    }
    std::memcpy(&value, file.data() + offset, sizeof(T));
    return value;
}

struct Segments {
    std::optional<Elf64_Phdr> dynamic;
    std::string_view file;
    Elf64_Ehdr header{};

    /// Where in the file an address is.
    std::optional<std::uint64_t> offset_of(std::uint64_t address) const {
        for (unsigned at = 0; at < header.e_phnum; ++at) {
            const auto one = read_at<Elf64_Phdr>(file, header.e_phoff + at * sizeof(Elf64_Phdr));
            if (one && one->p_type == PT_LOAD && address >= one->p_vaddr &&
                address - one->p_vaddr < one->p_filesz) {
                return one->p_offset + (address - one->p_vaddr);
            }
        }
        return std::nullopt;
    }
};

std::optional<Segments> read_segments(std::string_view file) {
    const auto header = read_at<Elf64_Ehdr>(file, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phentsize != sizeof(Elf64_Phdr)) {
        return std::nullopt;
    }
    Segments found{std::nullopt, file, *header};
    for (unsigned at = 0; at < header->e_phnum; ++at) {
        const auto one = read_at<Elf64_Phdr>(file, header->e_phoff + at * sizeof(Elf64_Phdr));
        if (one && one->p_type == PT_DYNAMIC) {
            found.dynamic = one;
        }
    }
    return found;
}

/// Where in the file the folders are named that the program's libraries are looked for in.
std::optional<std::uint64_t> find_folders(const Segments& segments) {
    std::optional<std::uint64_t> strings;
    std::optional<std::uint64_t> folders;
    const Elf64_Phdr& dynamic = *segments.dynamic;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic.p_filesz;
         at += sizeof(Elf64_Dyn)) {
        const auto entry = read_at<Elf64_Dyn>(segments.file, dynamic.p_offset + at);
        if (!entry || entry->d_tag == DT_NULL) {
            break;
        }
        if (entry->d_tag == DT_STRTAB) {
            strings = segments.offset_of(entry->d_un.d_ptr);
        } else if (entry->d_tag == DT_RUNPATH || (entry->d_tag == DT_RPATH && !folders)) {
            folders = entry->d_un.d_val;
        }
    }
    return strings && folders ? std::optional(*strings + *folders) : std::nullopt;
}

Status overwrite(const std::string& program, std::uint64_t offset, const std::string& bytes) {
    BOOST_OUTCOME_TRY(const UniqueFd file, open_file(program, O_WRONLY | O_NOFOLLOW, 0));
    const ssize_t wrote =
        ::pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    return wrote == static_cast<ssize_t>(bytes.size())
               ? Status(ok())
               : Error::from_errno(wrote < 0 ? errno : EIO, "write(" + program + ")");
}

}  // namespace

Status look_beside_itself(const std::string& program) {
    BOOST_OUTCOME_TRY(const std::string file, read_file(program, kProgramBytesMax));
    const auto segments = read_segments(file);
    if (!segments || !segments->dynamic) {
        return no_room(program, "it is no program of this machine with shared libraries");
    }
    const auto place = find_folders(*segments);
    if (!place || *place >= file.size()) {
        return no_room(program, "it does not say where its libraries are");
    }
    const std::size_t end = file.find('\0', *place);
    if (end == std::string::npos) {
        return no_room(program, "it is damaged");
    }
    const std::string_view folders(file.data() + *place, end - *place);
    const std::string_view wanted = kBesideItself;
    if (folders == wanted || folders.starts_with(std::string(wanted) + ":")) {
        return ok();
    }
    if (folders.size() < wanted.size()) {
        return no_room(program, "its libraries are in " + std::string(folders));
    }
    std::string bytes(folders.size(), '\0');
    bytes.replace(0, wanted.size(), wanted);
    return overwrite(program, *place, bytes);
}

}  // namespace cellkeep::environments
