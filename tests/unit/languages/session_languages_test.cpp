// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/session_languages.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

using cellkeep::sandbox::ReadOnlyPath;
using namespace cellkeep::session;

namespace {

KernelSpec spec_of(const std::string& language, std::vector<ReadOnlyPath> paths) {
    KernelSpec spec;
    spec.language = language;
    spec.read_only = std::move(paths);
    return spec;
}

std::vector<std::string> targets_of(const SessionLanguages& languages) {
    std::vector<std::string> targets;
    for (const ReadOnlyPath& path : languages.read_only) {
        targets.push_back(path.target);
    }
    return targets;
}

std::vector<ReadOnlyPath> some_paths(const std::string& prefix, std::size_t count) {
    std::vector<ReadOnlyPath> paths;
    for (std::size_t i = 0; i < count; ++i) {
        const std::string path = prefix + std::to_string(i);
        paths.push_back({path, path});
    }
    return paths;
}

const KernelSpec kMain = spec_of("python", {{"/usr/bin", "/usr/bin"}, {"/x/env", "/opt/env"}});

}  // namespace

TEST_CASE("a sandbox shows each path of its languages once, the main one's first", "[session]") {
    KernelCatalog offered;
    offered.add(kMain);
    offered.add(spec_of("bash", {{"/usr/bin", "/usr/bin"}, {"/k/bash", "/opt/bash"}}));
    offered.add(spec_of("sql", {{"/k/bash", "/opt/bash"}, {"/k/sql", "/opt/sql"}}));
    const SessionLanguages languages = combine_languages(offered, kMain);
    CHECK(
        targets_of(languages) ==
        std::vector<std::string>{"/usr/bin", "/opt/env", "/opt/bash", "/opt/sql"});
    CHECK(languages.catalog->languages() == std::vector<std::string>{"bash", "python", "sql"});
}

TEST_CASE("a language that wants another's place is left out, with all its paths", "[session]") {
    const auto left_out = GENERATE(
        spec_of("other", {{"/k/other", "/opt/other"}, {"/y/env", "/opt/env"}}),  // something else
        spec_of("other", {{"/k/other", "/opt/other"}, {"/opt", "/opt"}}));       // covers it
    KernelCatalog offered;
    offered.add(kMain);
    offered.add(left_out);
    const SessionLanguages languages = combine_languages(offered, kMain);
    CHECK(languages.catalog->find("other") == nullptr);
    const Error refused = languages.catalog->refuse("other");
    CHECK(refused.field() == "language");
    CHECK_THAT(refused.message(), Catch::Matchers::Contains("something else at /opt"));
    CHECK_THAT(refused.hint(), Catch::Matchers::Contains("Create a session"));
    CHECK(targets_of(languages) == std::vector<std::string>{"/usr/bin", "/opt/env"});
}

TEST_CASE("a path that must run programs is not there where none may run", "[session]") {
    KernelCatalog offered;
    const KernelSpec main =
        spec_of("python", {{.source = "/d", .target = "/d", .executable = false}});
    offered.add(main);
    offered.add(spec_of("data", {{.source = "/d", .target = "/d", .executable = false}}));
    offered.add(spec_of("programs", {{"/d", "/d"}}));
    const SessionLanguages languages = combine_languages(offered, main);
    CHECK(languages.catalog->find("data") != nullptr);
    CHECK(languages.catalog->find("programs") == nullptr);
    CHECK(targets_of(languages) == std::vector<std::string>{"/d"});
}

TEST_CASE("each image that paths come from is named once", "[session]") {
    KernelCatalog offered;
    KernelSpec main = kMain;
    main.images = {{"/images/1", "sha256:1", "private copy"}};
    KernelSpec other = spec_of("other", {{"/images/2/opt", "/opt/other"}});
    other.images = {main.images[0], {"/images/2", "sha256:2", "private copy"}};
    offered.add(main);
    offered.add(other);
    const SessionLanguages languages = combine_languages(offered, main);
    REQUIRE(languages.images.size() == 2);
    CHECK(languages.images[1].root == "/images/2");
}

TEST_CASE("a session knows why languages of its server do not run in it", "[session]") {
    KernelCatalog offered;
    offered.add(kMain);
    offered.withhold({"cpp", "it has not been built", "Build it."});
    const SessionLanguages languages = combine_languages(offered, kMain);
    CHECK(
        languages.catalog->refuse("cpp").message() ==
        "language: cpp is not offered: it has not been built");
    CHECK(languages.catalog->refuse("cpp").hint() == "Build it.");
    CHECK(languages.catalog->refuse("cobol").message() == "language: cobol is not offered");
}

TEST_CASE("a session shows at most as many paths as a catalogue may have", "[session]") {
    KernelCatalog offered;
    offered.add(kMain);
    offered.add(spec_of("fits", some_paths("/f", kCatalogPathsMax - 2)));
    offered.add(spec_of("zone-too-many", {{"/z", "/z"}}));
    const SessionLanguages languages = combine_languages(offered, kMain);
    CHECK(languages.read_only.size() == kCatalogPathsMax);
    CHECK(languages.catalog->find("fits") != nullptr);
    CHECK(languages.catalog->find("zone-too-many") == nullptr);
    CHECK_THAT(
        languages.catalog->refuse("zone-too-many").message(),
        Catch::Matchers::Contains("more than 240 paths"));
}
