// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/debian_packages.hpp"

#include "tests/support/temporary_directory.hpp"
#include "tests/unit/image/image_fixture.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::image {
namespace {

constexpr const char* kPackagesStatus =
    "Package: shell\n"
    "Status: install ok installed\n"
    "Architecture: amd64\n"
    "Version: 5.2-1\n"
    "Pre-Depends: libc (>= 2.36)\n"
    "Depends: absent-one | editor:any (>= 1) [amd64], awk\n"
    "Description: says\n"
    " Package: liar\n"
    "\n"
    "Package: libc\n"
    "Status: install ok installed\n"
    "Architecture: amd64\n"
    "Version: 2.36\n"
    "\n"
    "Package: editor\n"
    "Status: hold ok installed\n"
    "Architecture: all\n"
    "Version: 1\n"
    "Depends: shell, nowhere-to-be-had\n"
    "\n"
    "Package: mawk\n"
    "Status: install ok installed\n"
    "Architecture: amd64\n"
    "Version: 1.3\n"
    "Provides: awk (= 1), other-awk\n"
    "\n"
    "Package: removed\n"
    "Status: deinstall ok config-files\n"
    "Architecture: amd64\n"
    "Version: 9\n"
    "\n"
    "Package: unrelated\n"
    "Status: install ok installed\n"
    "Architecture: amd64\n"
    "Version: 1\n";

std::vector<std::string> names_of(const std::vector<const Package*>& packages) {
    std::vector<std::string> names;
    for (const Package* package : packages) {
        names.push_back(package->name);
    }
    return names;
}

TEST_CASE("packages come with all they need, cycles and virtual ones included", "[image]") {
    const auto database = PackageDatabase::parse(kPackagesStatus, "/nowhere");
    CHECK(
        names_of(database.closure({"shell"})) ==
        std::vector<std::string>{"editor", "libc", "mawk", "shell"});
    CHECK(names_of(database.closure({"other-awk"})) == std::vector<std::string>{"mawk"});
    CHECK(database.closure({"shell"})[1]->version == "2.36");
}

TEST_CASE("a digest of packages is of their names and versions", "[image]") {
    const auto digest_of_all = [](const std::string& status) {
        return digest_of(PackageDatabase::parse(status, "/nowhere").closure({"shell", "editor"}));
    };
    const std::string before = digest_of_all(kPackagesStatus);
    CHECK(before.starts_with("sha256:"));
    CHECK(digest_of_all(kPackagesStatus) == before);
    const auto changed = [](const std::string& from, const std::string& to) {
        std::string status = kPackagesStatus;
        return status.replace(status.find(from), from.size(), to);
    };
    CHECK(digest_of_all(changed("Version: 2.36", "Version: 2.37")) != before);
    CHECK(digest_of_all(changed("Architecture: all", "Architecture: amd64")) != before);
    CHECK(digest_of_all(changed("Pre-Depends: libc (>= 2.36)\n", "")) != before);
    CHECK(digest_of_all(changed("Description: says", "Description: else")) == before);
    CHECK(digest_of({}) != before);
}

TEST_CASE("what is not installed is in no closure", "[image]") {
    const auto database = PackageDatabase::parse(kPackagesStatus, "/nowhere");
    for (const char* name : {"removed", "liar", "absent-one", "", "Shell", "shell "}) {
        CAPTURE(name);
        CHECK(database.closure({name}).empty());
        CHECK_FALSE(database.installed(name));
    }
    CHECK(PackageDatabase::parse("", "/nowhere").closure({"shell"}).empty());
    CHECK(PackageDatabase::parse("nonsense\n\n\n: :\n", "/nowhere").closure({""}).empty());
}

TEST_CASE("a package's files are those of its list, of a merged /usr where they are", "[image]") {
    const test::TemporaryDirectory scratch;
    test::write_host_file(scratch.path() + "/status", kPackagesStatus);
    test::write_host_file(
        scratch.path() + "/info/shell.list",
        "/.\n/bin\n/bin/sh\n/lib/x\n/usr/bin/shell\n\n/etc/rc\n");
    test::write_host_file(scratch.path() + "/info/libc:amd64.list", "/lib64/ld.so\n");
    const auto database = PackageDatabase::load(scratch.path());
    REQUIRE(database.has_value());
    const auto closure = database.value().closure({"shell"});
    const auto files = database.value().files(*closure[3]);
    REQUIRE(files.has_value());
    CHECK(
        files.value() ==
        std::vector<std::string>{"/bin", "/usr/bin/sh", "/usr/lib/x", "/usr/bin/shell", "/etc/rc"});
    CHECK(
        database.value().files(*closure[1]).value() ==
        std::vector<std::string>{"/usr/lib64/ld.so"});
    CHECK(database.value().files(*closure[2]).has_error());
    CHECK(PackageDatabase::load(scratch.path() + "/no").error().code() == ErrorCode::kNotFound);
}

}  // namespace
}  // namespace cellkeep::image
