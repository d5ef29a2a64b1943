// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/relocation.hpp"

#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

namespace cellkeep::test {
namespace {

using environments::kBesideItself;
using environments::look_beside_itself;

constexpr std::uint64_t kBase = 0x400000;
constexpr const char* kBefore = "libc.so.6";
constexpr const char* kAfter = "free";

template <typename T>
std::string bytes_of(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

/// A program of one loaded segment, whose dynamic section names folders for libraries. tag 0: none.
std::string make_elf(Elf64_Sxword tag, const std::string& folders) {
    const std::string strings =
        std::string("\0", 1) + kBefore + '\0' + folders + '\0' + kAfter + '\0';
    constexpr std::uint64_t kStrings = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr);
    const std::uint64_t dynamic = kStrings + strings.size();
    std::string entries;
    const auto add = [&entries](Elf64_Sxword kind, std::uint64_t value) {
        Elf64_Dyn entry{};
        entry.d_tag = kind;
        entry.d_un.d_val = value;
        entries += bytes_of(entry);
    };
    add(DT_NEEDED, 1);
    if (tag != 0) {
        add(tag, 1 + std::strlen(kBefore) + 1);
    }
    add(DT_STRTAB, kBase + kStrings);
    add(DT_NULL, 0);
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_phoff = sizeof(Elf64_Ehdr);
    header.e_phnum = 2;
    header.e_phentsize = sizeof(Elf64_Phdr);
    Elf64_Phdr load{};
    load.p_type = PT_LOAD;
    load.p_vaddr = kBase;
    load.p_filesz = dynamic + entries.size();
    Elf64_Phdr table{};
    table.p_type = PT_DYNAMIC;
    table.p_offset = dynamic;
    table.p_filesz = entries.size();
    return bytes_of(header) + bytes_of(load) + bytes_of(table) + strings + entries;
}

struct Program {
    explicit Program(const std::string& bytes) : path(folder.file("program")) {
        std::ofstream(path, std::ios::binary) << bytes;
    }
    std::string bytes() const {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    TemporaryDirectory folder;
    std::string path;
};

TEST_CASE("a program looks for its libraries beside itself", "[environments][python]") {
    for (const Elf64_Sxword tag : {DT_RUNPATH, DT_RPATH}) {
        for (const std::string& folders :
             {std::string("/home/u/.pyenv/versions/3.12.1/lib"), std::string("/usr/other/lib")}) {
            CAPTURE(tag, folders);
            const Program program(make_elf(tag, folders));
            REQUIRE(folders.size() >= std::strlen(kBesideItself));
            REQUIRE(look_beside_itself(program.path).has_value());
            std::string wanted = kBesideItself;
            wanted.resize(folders.size(), '\0');
            CHECK(program.bytes() == make_elf(tag, wanted));  // and nothing else has changed
            CHECK(look_beside_itself(program.path).has_value());
            CHECK(program.bytes() == make_elf(tag, wanted));
        }
    }
}

TEST_CASE("one that looks beside itself stays as it is", "[environments][python]") {
    const std::string there = make_elf(DT_RUNPATH, std::string(kBesideItself) + ":/usr/local/lib");
    const Program program(there);
    CHECK(look_beside_itself(program.path).has_value());
    CHECK(program.bytes() == there);
}

TEST_CASE("a program that has no room to say so is refused", "[environments][python]") {
    const std::string good = make_elf(DT_RUNPATH, "/home/somebody/python/lib");
    std::string other_class = good;
    other_class[EI_CLASS] = ELFCLASS32;
    std::string far = good;  // its segments are beyond the file's end
    far[offsetof(Elf64_Ehdr, e_phoff) + 6] = '\x7f';
    std::string unmapped = good;  // its strings are in no segment
    unmapped.replace(
        sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_filesz), sizeof(Elf64_Xword), 8, '\0');
    for (const std::string& bytes :
         {make_elf(DT_RUNPATH, "/opt/p/lib"),  // shorter
          make_elf(DT_RUNPATH, ""),
          make_elf(0, "/home/somebody/python/lib"),
          std::string("#!/bin/sh\n"),
          std::string(),
          good.substr(0, sizeof(Elf64_Ehdr)),
          other_class,
          far,
          unmapped}) {
        const Program program(bytes);
        const Status refused = look_beside_itself(program.path);
        REQUIRE(refused.has_error());
        CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
        CHECK(refused.error().hint().find("uv python install") != std::string::npos);
        CHECK(program.bytes() == bytes);
    }
    CHECK(look_beside_itself("/nonexistent").error().code() == ErrorCode::kSystem);
}

}  // namespace
}  // namespace cellkeep::test
