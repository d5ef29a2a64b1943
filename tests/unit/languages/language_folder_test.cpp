// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/language_folder.hpp"

#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>

namespace cellkeep::session {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using nlohmann::json;

struct Folders {
    void add(const std::string& name, const json& changes = json::object()) const {
        json about{{"language", name}, {"display_name", name}, {"argv", {"/bin/true"}}};
        about.update(changes);
        write(name, about.dump());
    }
    void write(const std::string& name, const std::string& text) const {
        fs::create_directories(path() + "/" + name);
        std::ofstream(path() + "/" + name + "/kernel.json") << text;
    }
    std::string path() const { return directory.path(); }
    LanguageFolders find(const std::string& programs = "") const {
        return find_language_folders({path(), "/no/such"}, path() + "/environments", programs);
    }
    /// Why the one folder there is not offered.
    std::string refusal() const {
        const LanguageFolders folders = find();
        REQUIRE(folders.found.empty());
        REQUIRE(folders.not_offered.size() == 1);
        return folders.not_offered.front().reason;
    }
    cellkeep::test::TemporaryDirectory directory;
};

}  // namespace

TEST_CASE("folders with a kernel.json are languages", "[session][languages]") {
    const Folders folders;
    folders.add("one");
    folders.add("two");
    fs::create_directories(folders.path() + "/none");
    std::ofstream(folders.path() + "/file") << "x";
    const LanguageFolders found = folders.find();
    REQUIRE(found.found.size() == 2);
    CHECK(found.found[0].about.language == "one");
    CHECK(found.found[1].path == folders.path() + "/two");
    CHECK(found.not_offered.empty());
    CHECK(find_language_folders({}, "", "").found.empty());
}

TEST_CASE("what a language needs is found on the host", "[session][languages]") {
    const Folders folders;
    fs::create_directories(folders.path() + "/bin");
    fs::create_directories(folders.path() + "/environments/packs");
    std::ofstream(folders.path() + "/bin/real") << "x";
    fs::permissions(folders.path() + "/bin/real", fs::perms::owner_all);
    fs::create_symlink("real", folders.path() + "/bin/linked");
    folders.add(
        "toy", {{"programs", {{"p", "linked"}}}, {"packages", "packs"}, {"requires", {"/"}}});
    const LanguageFolders found = folders.find("relative:/no/such:" + folders.path() + "/bin");
    REQUIRE(found.found.size() == 1);
    CHECK(found.found[0].programs.at("p") == fs::canonical(folders.path() + "/bin/real").string());
    CHECK(found.found[0].packages == folders.path() + "/environments/packs");
}

TEST_CASE("what a language lacks is named", "[session][languages]") {
    const Folders folders;
    SECTION("a file") {
        folders.add("toy", {{"requires", {"/no/such"}}});
        CHECK_THAT(folders.refusal(), Contains("/no/such"));
    }
    SECTION("a program") {
        folders.add("toy", {{"programs", {{"p", "no-such-program"}}}});
        CHECK_THAT(folders.refusal(), Contains("no-such-program"));
    }
    SECTION("a program that is not executable") {
        std::ofstream(folders.path() + "/text") << "x";
        folders.add("toy", {{"programs", {{"p", folders.path() + "/text"}}}});
        CHECK_THAT(folders.refusal(), Contains("/text"));
    }
    SECTION("packages") {
        folders.add("toy", {{"packages", "nothere"}});
        CHECK_THAT(folders.refusal(), Contains("environments/nothere"));
    }
    SECTION("a kernel.json that can be read") {
        folders.write("toy", "{");
        CHECK_THAT(folders.refusal(), Contains("toy/kernel.json"));
    }
    SECTION("a name of its own") {
        folders.add("toy", {{"language", "python"}});
        CHECK_THAT(folders.refusal(), Contains("of that name already"));
    }
}

TEST_CASE(
    "the hint about what a language lacks names the packages to install", "[session][languages]") {
    const Folders folders;
    folders.add("file", {{"requires", {"/no/such"}}, {"system_packages", {"one", "two"}}});
    folders.add("program", {{"programs", {{"p", "no-such"}}}, {"system_packages", {"nodejs"}}});
    folders.add("unknown", {{"requires", {"/no/such"}}});
    const LanguageFolders found = folders.find();
    REQUIRE(found.not_offered.size() == 3);
    CHECK_THAT(found.not_offered[0].hint, Contains("packages one two,"));
    CHECK_THAT(found.not_offered[1].hint, Contains("nodejs"));
    CHECK(found.not_offered[2].hint.empty());
}

TEST_CASE("of two languages of a name the first one counts", "[session][languages]") {
    const Folders folders;
    folders.add("a", {{"language", "same"}});
    folders.add("b", {{"language", "same"}});
    const LanguageFolders found = folders.find();
    REQUIRE(found.found.size() == 1);
    CHECK(found.found[0].path == folders.path() + "/a");
    REQUIRE(found.not_offered.size() == 1);
    CHECK(found.not_offered[0].language == "same");
}

TEST_CASE(
    "programs are found as a shell finds them, but never beside the server",
    "[session][languages]") {
    CHECK(find_program("sh", "/usr/bin:/bin") == fs::canonical("/usr/bin/sh").string());
    CHECK(find_program("/bin/sh", "") == fs::canonical("/bin/sh").string());
    for (const char* path : {"", ":", ".", "bin", "/no/such", "/etc"}) {
        CHECK(find_program("sh", path).empty());
    }
    CHECK(find_program("", "/usr/bin").empty());
    CHECK(find_program("/usr/bin", "").empty());
}

}  // namespace cellkeep::session
