// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/environments/tar_text.hpp"

#include "protocol/support/syscall.hpp"

#include <catch2/catch.hpp>

#include <sys/mman.h>

#include <cstddef>
#include <cstdio>
#include <string_view>

namespace cellkeep::test {

namespace {

constexpr std::size_t kTarBlock = 512;

std::string octal(std::uint64_t value, std::size_t size) {
    std::string digits;
    for (; digits.size() + 1 < size; value >>= 3U) {
        digits.insert(digits.begin(), static_cast<char>('0' + (value & 7U)));
    }
    return digits;
}

}  // namespace

std::string tar_part(const TarPart& part) {
    std::string header(kTarBlock, '\0');
    const auto put = [&header](std::size_t at, std::string_view text) {
        header.replace(at, text.size(), text);
    };
    put(0, part.name.substr(0, 100));
    put(100, octal(part.mode, 8));
    put(108, octal(0, 8));
    put(116, octal(0, 8));
    put(124, octal(part.contents.size(), 12));
    put(136, octal(1'600'000'000, 12));
    put(148, "        ");
    header[156] = part.type;
    put(157, part.link.substr(0, 100));
    put(257, part.gnu ? std::string_view("ustar  \0", 8) : std::string_view("ustar\00000", 8));
    put(345, part.prefix);
    std::uint64_t sum = 0;
    for (const char byte : header) {
        sum += static_cast<unsigned char>(byte);
    }
    put(148, octal(sum, 7) + std::string("\0 ", 2));
    std::string contents = part.contents;
    contents.resize((contents.size() + kTarBlock - 1) / kTarBlock * kTarBlock, '\0');
    return header + contents;
}

std::string tar_end() {
    return std::string(2 * kTarBlock, '\0');
}

UniqueFd file_with(const std::string& bytes) {
    UniqueFd file(::memfd_create("archive", MFD_CLOEXEC));
    REQUIRE(file);
    REQUIRE(write_all(file.get(), std::string_view(bytes)).has_value());
    return file;
}

}  // namespace cellkeep::test
