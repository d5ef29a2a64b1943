// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/manifest.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <string>
#include <vector>

namespace cellkeep::image {
namespace {

constexpr std::size_t kHexDigits = 64;

Manifest example_manifest() {
    Manifest manifest;
    manifest.entries["bin"] = {};
    manifest.entries["bin/tool"] = {EntryType::kFile, true, 5, 1'700'000'000, std::string(64, '1')};
    manifest.entries["lib"] = {EntryType::kLink, false, 0, 0, "usr/lib"};
    return manifest;
}

/// Fields joined by NUL, as a manifest's text is.
std::string text_of(const std::vector<std::string>& fields) {
    std::string text;
    for (const std::string& field : fields) {
        text += field;
        text += '\0';
    }
    return text;
}

std::vector<std::string> entry(
    const std::string& type,
    const std::string& bytes,
    const std::string& modified,
    const std::string& content,
    const std::string& path) {
    return {"cellkeep manifest 1", type, bytes, modified, content, path};
}

TEST_CASE("a manifest is read as it was written", "[image][manifest]") {
    const Manifest manifest = example_manifest();
    const auto read = Manifest::parse(manifest.to_text());
    REQUIRE(read.has_value());
    CHECK(read.value().entries == manifest.entries);
    CHECK(read.value().digest() == manifest.digest());
    CHECK(is_digest(manifest.digest()));
    CHECK(manifest.bytes() == 5);
}

TEST_CASE("a manifest's digest tells every change of it", "[image][manifest]") {
    std::set<std::string> digests{example_manifest().digest()};
    Manifest changed = example_manifest();
    changed.entries["bin/tool"].executable = false;
    digests.insert(changed.digest());
    changed.entries["bin/tool"].modified += 1;
    digests.insert(changed.digest());
    changed.entries["bin/tool"].bytes += 1;
    digests.insert(changed.digest());
    changed.entries["bin/tool"].content.back() = '2';
    digests.insert(changed.digest());
    changed.entries["lib"].content = "usr/lib64";
    digests.insert(changed.digest());
    changed.entries["share"] = {};
    digests.insert(changed.digest());
    CHECK(digests.size() == 7);
}

TEST_CASE("what is no manifest is refused", "[image][manifest]") {
    const std::string hash(kHexDigits, 'a');
    for (const auto& fields : std::vector<std::vector<std::string>>{
             {},
             {""},
             {"cellkeep manifest 2"},
             {"cellkeep manifest 1", "d"},
             entry("z", "0", "0", "", "a"),
             entry("", "0", "0", "", "a"),
             entry("dd", "0", "0", "", "a"),
             entry("f", "", "0", hash, "a"),
             entry("f", "-1", "0", hash, "a"),
             entry("f", "99999999999999999999", "0", hash, "a"),
             entry("f", "1x", "0", hash, "a"),
             entry("f", "1", "noon", hash, "a"),
             entry("f", "1", "0", "", "a"),
             entry("f", "1", "0", hash + "a", "a"),
             entry("f", "1", "0", "A" + hash.substr(1), "a"),
             entry("d", "0", "0", "x", "a"),
             entry("l", "0", "0", "", "a"),
             entry("d", "0", "0", "", ""),
             entry("d", "0", "0", "", "/a"),
             entry("d", "0", "0", "", "a/"),
             entry("d", "0", "0", "", "a//b"),
             entry("d", "0", "0", "", "."),
             entry("d", "0", "0", "", "a/../b"),
             entry("d", "0", "0", "", "..")}) {
        CAPTURE(fields);
        CHECK(Manifest::parse(text_of(fields)).has_error());
    }
    const std::string whole = example_manifest().to_text();
    for (std::size_t cut = 1; cut < whole.size(); cut += 7) {
        const auto part = Manifest::parse(whole.substr(0, cut));
        CHECK((part.has_error() || part.value().digest() != example_manifest().digest()));
    }
    auto fields = entry("d", "0", "0", "", "b");
    for (const char* field : {"d", "0", "0", "", "a"}) {
        fields.emplace_back(field);
    }
    CHECK(Manifest::parse(text_of(fields)).has_error());  // out of order
    fields.back() = "b";
    CHECK(Manifest::parse(text_of(fields)).has_error());  // twice
    fields.back() = "c";
    CHECK(Manifest::parse(text_of(fields)).has_value());
}

TEST_CASE("a manifest has at most kImageEntriesMax entries", "[image][manifest]") {
    Manifest manifest;
    for (std::size_t i = 0; i < kImageEntriesMax; ++i) {
        manifest.entries.emplace_hint(
            manifest.entries.end(), std::to_string(10'000'000 + i), Entry{});
    }
    CHECK(Manifest::parse(manifest.to_text()).has_value());
    manifest.entries["x"] = {};
    CHECK(Manifest::parse(manifest.to_text()).has_error());
}

TEST_CASE("a digest is sha256 and 64 digits", "[image][manifest]") {
    const std::string hex(kHexDigits, '0');
    CHECK(is_digest("sha256:" + hex));
    for (const std::string& text :
         {hex,
          "sha256:" + hex.substr(1),
          "sha256:" + hex + "0",
          "sha256:G" + hex.substr(1),
          "sha512:" + hex,
          std::string("sha256:"),
          std::string()}) {
        CAPTURE(text);
        CHECK_FALSE(is_digest(text));
    }
}

}  // namespace
}  // namespace cellkeep::image
