// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/debian/tar_reader.hpp"

#include "tests/unit/environments/tar_text.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <string>

namespace cellkeep::test {
namespace {

using environments::kTarPathBytesMax;
using environments::kTarPathPartsMax;
using environments::read_tar;
using environments::TarEntry;

Result<std::vector<TarEntry>> entries_of(const std::string& bytes) {
    return read_tar(file_with(bytes).get());
}

ErrorCode refusal_of(const std::string& bytes) {
    const auto entries = entries_of(bytes);
    REQUIRE(entries.has_error());
    return entries.error().code();
}

TEST_CASE("an archive's files, folders and links are listed", "[environments][debian]") {
    const std::string bytes = tar_part({"./", '5', "", "", 0755}) +
                              tar_part({"./usr/bin/tool", '0', "#!tool", "", 04755}) +
                              tar_part({"./usr/bin/same", '1', "", "./usr/bin/tool"}) +
                              tar_part({"./usr/lib/x.so", '2', "", "/lib/y.so"}) +
                              tar_part({"./dev/null", '3'}) + tar_part({"old", '\0', "text"}) +
                              tar_end();
    const UniqueFd file = file_with(bytes);
    const auto read = read_tar(file.get());
    REQUIRE(read.has_value());
    const auto& entries = read.value();
    REQUIRE(entries.size() == 6);
    CHECK(entries[0].type == TarEntry::Type::kDirectory);
    CHECK(entries[0].path.empty());
    CHECK(entries[1].path == "usr/bin/tool");
    CHECK(entries[1].mode == 04755);
    CHECK(entries[1].bytes == 6);
    CHECK(entries[1].modified == 1'600'000'000);
    std::string contents(6, ' ');
    REQUIRE(::pread(file.get(), contents.data(), 6, static_cast<off_t>(entries[1].offset)) == 6);
    CHECK(contents == "#!tool");
    CHECK(entries[2].type == TarEntry::Type::kSameFile);
    CHECK(entries[2].link == "usr/bin/tool");
    CHECK(entries[3].type == TarEntry::Type::kLink);
    CHECK(entries[3].link == "/lib/y.so");
    CHECK(entries[4].type == TarEntry::Type::kOther);
    CHECK(entries[5].type == TarEntry::Type::kFile);
}

TEST_CASE("long names are those of GNU's tar or of ustar's prefix", "[environments][debian]") {
    const std::string longer = "usr/" + std::string(300, 'x');
    const std::string prefix = "usr/" + std::string(100, 'p');
    const auto read = entries_of(
        tar_part({"././@LongLink", 'L', "./" + longer + std::string(1, '\0')}) +
        tar_part({"././@LongLink", 'K', "/" + longer + std::string(1, '\0')}) +
        tar_part({"./usr/xxx", '2', "", "/usr/xxx"}) +
        tar_part({"name", '0', "", "", 0644, prefix, false}) +
        tar_part({"name", '0', "", "", 0644, "other", true}) + tar_end());
    REQUIRE(read.has_value());
    REQUIRE(read.value().size() == 3);
    CHECK(read.value()[0].path == longer);
    CHECK(read.value()[0].link == "/" + longer);
    CHECK(read.value()[1].path == prefix + "/name");
    CHECK(read.value()[2].path == "name");  // GNU's has other fields in the prefix's place
}

TEST_CASE("a path that leads out, or is none, makes it no archive", "[environments][debian]") {
    for (const std::string& name :
         {std::string("../etc/passwd"),
          std::string("./usr/../../etc/passwd"),
          std::string("usr/.."),
          std::string(".."),
          std::string("/etc/passwd"),
          std::string("usr/a\nb"),
          std::string("usr/\x7f")}) {
        CAPTURE(name);
        CHECK(refusal_of(tar_part({name, '0', "x"}) + tar_end()) == ErrorCode::kProtocol);
        CHECK(refusal_of(tar_part({"a", '1', "", name}) + tar_end()) == ErrorCode::kProtocol);
    }
    const std::string too_long(kTarPathBytesMax + 1, 'x');
    CHECK(
        refusal_of(tar_part({"long", 'L', too_long}) + tar_part({"a"}) + tar_end()) ==
        ErrorCode::kProtocol);
    CHECK(refusal_of(tar_part({"long", 'L', too_long + "x"}) + tar_end()) == ErrorCode::kProtocol);
    CHECK(refusal_of(tar_part({"a", '2'}) + tar_end()) == ErrorCode::kProtocol);
    std::string deep = "usr";
    for (std::size_t parts = 1; parts < kTarPathPartsMax; ++parts) {
        deep += "/a";
    }
    const auto long_part = [](const std::string& name) {
        return tar_part({"long", 'L', name}) + tar_part({"a", '0', "x"}) + tar_end();
    };
    CHECK(entries_of(long_part(deep)).has_value());
    CHECK(refusal_of(long_part(deep + "/b")) == ErrorCode::kProtocol);
}

TEST_CASE(
    "an archive that ends early, lies or is of another form is refused", "[environments][debian]") {
    const std::string good = tar_part({"a", '0', "text"}) + tar_end();
    REQUIRE(entries_of(good).has_value());
    for (const std::size_t size : {0U, 1U, 511U, 512U, 700U, 1024U, 1100U}) {
        CAPTURE(size);
        CHECK(refusal_of(good.substr(0, size)) == ErrorCode::kProtocol);
    }
    std::string changed = good;
    changed[0] = 'b';
    CHECK(refusal_of(changed) == ErrorCode::kProtocol);  // the sum
    for (const char type : {'x', 'g', 'S', 'V', '8', ' '}) {
        CAPTURE(type);
        CHECK(refusal_of(tar_part({"a", type}) + tar_end()) == ErrorCode::kProtocol);
    }
    std::string larger = tar_part({"a", '0', std::string(5000, 'x')});
    CHECK(refusal_of(larger.substr(0, 1024) + tar_end()) == ErrorCode::kProtocol);
    CHECK(refusal_of(std::string(4096, 'x')) == ErrorCode::kProtocol);
}

}  // namespace
}  // namespace cellkeep::test
