// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/kernel_catalog.hpp"

#include "kernel-manager/environments/name.hpp"
#include "kernel-manager/languages/session_languages.hpp"
#include "sandbox/shared/plan.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace cellkeep::session {
namespace {

/// A language with `own_paths` paths of its own, and one that every language has.
KernelSpec language_with(const std::string& name, std::size_t own_paths) {
    KernelSpec spec;
    spec.language = name;
    spec.read_only = {{"/usr/bin", "/usr/bin"}};
    for (std::size_t i = 0; i < own_paths; ++i) {
        const std::string path = "/srv/" + name + "/" + std::to_string(i);
        spec.read_only.push_back({path, path});
    }
    return spec;
}

constexpr const char* kSharedInside = "opt/cellkeep/lib/cellkeep/shared";

bool has_shared_libraries(const image::Sources& sources) {
    return std::any_of(
        sources.program_additions.begin(),
        sources.program_additions.end(),
        [](const image::Addition& one) {
            return one.source == "/pkg/lib/cellkeep/shared" && one.target == kSharedInside;
        });
}

}  // namespace

TEST_CASE("libraries that a package brings go into the image of programs", "[session][languages]") {
    Installation installation;
    CHECK_FALSE(has_shared_libraries(image_sources(installation)));
    installation.shared_libraries = "/pkg/lib/cellkeep/shared";
    CHECK(has_shared_libraries(image_sources(installation)));
}

TEST_CASE("languages that do not fit beside the others are withheld", "[session][languages]") {
    KernelCatalog catalog;
    catalog.offer(language_with("python", kCatalogPathsMax / 2));
    catalog.offer(language_with("huge", kCatalogPathsMax));
    catalog.offer(language_with("fits", kCatalogPathsMax / 2 - 1));
    catalog.offer(language_with("one-more", 1));
    catalog.offer(language_with("shares", 0));
    CHECK(catalog.languages() == std::vector<std::string>{"fits", "python", "shares"});
    REQUIRE(catalog.not_offered().size() == 2);
    CHECK(catalog.not_offered()[0].language == "huge");
    CHECK(
        catalog.not_offered()[1].reason ==
        "it needs 1 paths of its own, and of the 240 that a session can show the other languages "
        "take 240");
    CHECK_THAT(catalog.refuse("one-more").hint(), Catch::Matchers::Contains("--foreign-kernels"));
}

TEST_CASE("named environments take no places from one another", "[session][languages]") {
    KernelCatalog catalog;
    catalog.offer(language_with("python", kCatalogPathsMax / 4));
    for (const std::string name : {"one", "two", "three", "four"}) {
        KernelSpec named = language_with(name, kCatalogPathsMax / 4);
        named.language = "python";
        named.environment.name = name;
        catalog.offer(std::move(named));
    }
    catalog.offer(language_with("R", kCatalogPathsMax / 2));
    CHECK(catalog.not_offered().empty());
    CHECK(catalog.languages().size() == 6);
    const SessionLanguages languages =
        combine_languages(catalog, *catalog.find(environments::offered_name("python", "one")));
    CHECK(languages.read_only.size() <= kCatalogPathsMax);
}

TEST_CASE("a catalogue never has more paths than a sandbox can show", "[session][languages]") {
    KernelCatalog catalog;
    constexpr int kKernels = 60;
    for (int i = 0; i < kKernels; ++i) {
        catalog.offer(language_with("k" + std::to_string(i), 10));
    }
    const std::vector<std::string> offered = catalog.languages();
    CHECK(offered.size() == (kCatalogPathsMax - 1) / 10);
    CHECK(offered.size() + catalog.not_offered().size() == kKernels);
    for (const std::string& name : offered) {
        const SessionLanguages languages = combine_languages(catalog, *catalog.find(name));
        CHECK(languages.read_only.size() <= kCatalogPathsMax);
        CHECK(languages.read_only.size() < sandbox::kReadOnlyPathsMax);
        CHECK(languages.catalog->languages() == offered);
    }
}

TEST_CASE("languages of Cellkeep that are not installed are named", "[session][languages]") {
    const std::vector<NotOffered> known = {{"javascript", "it needs node", ""}};
    const auto absent = find_absent_languages({"python", "bash", "sql"}, known);
    REQUIRE(absent.size() == 2);
    CHECK(absent[0].language == "cpp");
    CHECK_THAT(absent[0].reason, Catch::Matchers::Contains("LLVM"));
    CHECK_THAT(absent[0].hint, Catch::Matchers::Contains("packages-cpp.txt"));
    CHECK(absent[1].language == "typescript");
    CHECK(find_absent_languages({"python", "bash", "sql", "cpp", "javascript", "typescript"}, {})
              .empty());
}

TEST_CASE("an absent language is described in sentences", "[session][languages]") {
    CHECK(describe({"x", "it is gone", "Build it."}) == "it is gone. Build it.");
    CHECK(describe({"x", "It is gone.", "Build it."}) == "It is gone. Build it.");
    CHECK(describe({"x", "it is gone", ""}) == "it is gone");
}

}  // namespace cellkeep::session
