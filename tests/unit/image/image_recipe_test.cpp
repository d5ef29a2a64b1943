// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/image_recipe.hpp"

#include "kernel-manager/image/environment_recipe.hpp"
#include "tests/unit/image/image_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>

namespace cellkeep::image {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSystemStatus =
    "Package: shell\nStatus: install ok installed\nArchitecture: amd64\nVersion: 5.2\n\n"
    "Package: other\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\n";

/// A Debian system with two packages and a Python environment.
struct System {
    System() : root(scratch.path()) {
        test::write_host_file(root + "/var/lib/dpkg/status", kSystemStatus);
        test::write_host_file(
            root + "/var/lib/dpkg/info/shell.list",
            "/usr/bin\n/bin/sh\n/usr/lib/m.py\n/usr/share/doc/shell/README\n/usr/gone\n/etc/rc\n");
        test::write_host_file(root + "/var/lib/dpkg/info/other.list", "/usr/bin/other\n");
        test::write_host_file(root + "/usr/bin/sh", "sh", 0755);
        test::write_host_file(root + "/usr/bin/other", "other", 0755);
        test::write_host_file(root + "/usr/lib/m.py", "m = 1");
        test::write_host_file(root + "/usr/lib/__pycache__/m.cpython-311.pyc", "compiled");
        test::write_host_file(root + "/usr/lib/__pycache__/n.cpython-311.pyc", "stray");
        test::write_host_file(root + "/usr/share/doc/shell/README", "read");
        test::write_host_file(root + "/etc/rc", "rc");
        test::write_host_file(root + "/etc/ssl/certs/one.pem", "certificate");
        fs::create_directories(root + "/etc/alternatives");
        fs::create_symlink("/usr/bin/sh", root + "/etc/alternatives/best");
        fs::create_symlink("/usr/bin/other", root + "/etc/alternatives/worst");
        fs::create_symlink("/etc/alternatives/best", root + "/usr/bin/best");
        fs::create_symlink("/etc/alternatives/worst", root + "/usr/bin/worst");
        const std::string libraries = root + "/usr/lib/x86_64-linux-gnu/";
        fs::create_directories(libraries);
        fs::create_symlink("/usr/lib/m.py", root + "/etc/alternatives/lib.so-best");
        fs::create_symlink("/usr/bin/other", root + "/etc/alternatives/lib.so-worst");
        fs::create_symlink("/etc/alternatives/lib.so-best", libraries + "lib.so.3");
        fs::create_symlink("/etc/alternatives/lib.so-worst", libraries + "lib.so.4");
        test::write_host_file(root + "/venv/.made-from", "stamp");
        test::write_host_file(root + "/venv/bin/python", "python", 0755);
        test::write_host_file(root + "/venv/lib/python3.11/site-packages/numpy.py", "1");
    }
    Recipe recipe(std::vector<std::string> packages = {"shell"}) const {
        auto made = environment_recipe({root, root + "/venv", std::move(packages)});
        REQUIRE(made.has_value());
        return std::move(made).value();
    }
    bool wants(const Recipe& recipe, const std::string& target) const {
        return std::any_of(recipe.copies.begin(), recipe.copies.end(), [&](const Copy& copy) {
            return copy.target == target;
        });
    }
    test::TemporaryDirectory scratch;
    std::string root;
};

TEST_CASE("an environment is what its packages have in /usr, and what was generated", "[image]") {
    const System system;
    const Recipe recipe = system.recipe();
    for (const char* target :
         {"usr/bin/sh",
          "usr/lib/m.py",
          "usr/lib/__pycache__/m.cpython-311.pyc",
          "usr/bin/best",
          "etc/alternatives/best",
          "usr/lib/x86_64-linux-gnu/lib.so.3",
          "etc/alternatives/lib.so-best",
          "etc/ssl/certs",
          "opt/cellkeep/environment"}) {
        CAPTURE(target);
        CHECK(system.wants(recipe, target));
    }
    for (const char* target :
         {"usr/bin/other",
          "usr/bin/worst",
          "etc/alternatives/worst",
          "usr/lib/x86_64-linux-gnu/lib.so.4",
          "usr/lib/__pycache__/n.cpython-311.pyc",
          "usr/share/doc/shell/README",
          "usr/gone",
          "usr/bin",
          "etc/rc",
          "etc/shadow",
          "root",
          "home"}) {
        CAPTURE(target);
        CHECK_FALSE(system.wants(recipe, target));
    }
    CHECK(system.wants(system.recipe({"shell", "other"}), "usr/bin/worst"));
}

TEST_CASE(
    "an environment's key is its recipe's, and changes with what goes into the image", "[image]") {
    const System system;
    const auto key = [&] {
        const auto made = environment_key({system.root, system.root + "/venv", {"shell"}});
        REQUIRE(made.has_value());
        const Recipe recipe = system.recipe();
        CHECK(made.value().kind == recipe.kind);
        CHECK(made.value().origin == recipe.origin);
        CHECK(made.value().fingerprint == recipe.fingerprint);
        return made.value().fingerprint;
    };
    const std::string first = key();
    fs::remove(system.root + "/etc/alternatives/worst");
    fs::create_symlink("/usr/bin/another", system.root + "/etc/alternatives/worst");
    CHECK(key() == first);  // of no package that was asked for
    fs::remove(system.root + "/etc/alternatives/lib.so-best");
    fs::create_symlink("/usr/bin/sh", system.root + "/etc/alternatives/lib.so-best");
    const std::string second = key();
    CHECK(second != first);
    fs::remove(system.root + "/etc/alternatives/lib.so-best");
    fs::create_symlink("/usr/gone", system.root + "/etc/alternatives/lib.so-best");
    CHECK(key() != second);  // the package lists it, and it is not there
    test::write_host_file(system.root + "/etc/ssl/certs/two.pem", "certificate");
    CHECK(key() != second);
}

TEST_CASE("a recipe can be carried out", "[image]") {
    const System system;
    const std::string out = system.scratch.path() + "/out";
    fs::create_directory(out);
    auto writer = TreeWriter::create(out);
    REQUIRE(writer.has_value());
    REQUIRE(copy_all(system.recipe(), writer.value()).has_value());
    CHECK(test::slurp(out + "/usr/bin/sh") == "sh");
    CHECK(test::slurp(out + "/etc/ssl/certs/one.pem") == "certificate");
    CHECK(
        test::slurp(out + "/opt/cellkeep/environment/lib/python3.11/site-packages/numpy.py") ==
        "1");
}

TEST_CASE("a fingerprint stays while nothing changes, and changes with what goes in", "[image]") {
    const System system;
    const std::string before = system.recipe().fingerprint;
    CHECK(system.recipe().fingerprint == before);
    CHECK(system.recipe({"shell", "other"}).fingerprint != before);
    // A file of a package that is not in the image.
    std::string status = kSystemStatus;
    status.replace(status.rfind("Version: 1"), 10, "Version: 2");
    test::write_host_file(system.root + "/var/lib/dpkg/status", status);
    CHECK(system.recipe().fingerprint == before);
    status.replace(status.find("Version: 5.2"), 12, "Version: 5.3");
    test::write_host_file(system.root + "/var/lib/dpkg/status", status);
    const std::string upgraded = system.recipe().fingerprint;
    CHECK(upgraded != before);
    // A file that is added and removed again; then one that stays.
    test::write_host_file(system.root + "/etc/ssl/certs/two.pem", "certificate");
    const std::string with_two = system.recipe().fingerprint;
    CHECK(with_two != upgraded);
    fs::remove(system.root + "/etc/ssl/certs/two.pem");
    CHECK(system.recipe().fingerprint == upgraded);
    test::write_host_file(system.root + "/venv/.made-from", "another");
    const std::string rebuilt = system.recipe().fingerprint;
    CHECK(rebuilt != upgraded);
    // What pip does, done by hand.
    test::write_host_file(system.root + "/venv/lib/python3.11/site-packages/scipy.py", "2");
    const std::string with_scipy = system.recipe().fingerprint;
    CHECK(with_scipy != rebuilt);
    fs::remove(system.root + "/etc/alternatives/best");
    fs::create_symlink("/usr/lib/m.py", system.root + "/etc/alternatives/best");
    CHECK(system.recipe().fingerprint != with_scipy);
}

TEST_CASE("a recipe names the packages that every session has", "[image]") {
    const System system;
    const std::string none = system.recipe().packages;
    const auto with_bash = [&system](const std::string& version) {
        test::write_host_file(
            system.root + "/var/lib/dpkg/status",
            std::string(kSystemStatus) +
                "\nPackage: bash\nStatus: install ok installed\nArchitecture: amd64\nVersion: " +
                version + "\n");
        test::write_host_file(system.root + "/var/lib/dpkg/info/bash.list", "/usr/bin/bash\n");
        return system.recipe().packages;
    };
    const std::string first = with_bash("5.2-1");
    CHECK(first != none);
    CHECK(with_bash("5.2-1") == first);
    CHECK(with_bash("5.2-2") != first);
    // What a foreign kernel needs besides is of no other session.
    CHECK(system.recipe({"bash", "shell"}).packages == system.recipe({"bash"}).packages);
    fs::remove_all(system.root + "/var");
    CHECK(system.recipe().packages.empty());
}

TEST_CASE("an environment without a stamp is looked at file by file", "[image]") {
    const System system;
    fs::remove(system.root + "/venv/.made-from");
    const std::string before = system.recipe().fingerprint;
    CHECK(system.recipe().fingerprint == before);
    test::write_host_file(system.root + "/venv/bin/python", "another python", 0755);
    CHECK(system.recipe().fingerprint != before);
}

TEST_CASE("where there are no packages, the whole folders are taken", "[image]") {
    const System system;
    fs::remove_all(system.root + "/var");
    const Recipe recipe = system.recipe();
    CHECK(system.wants(recipe, "usr/bin"));
    CHECK(system.wants(recipe, "usr/lib"));
    CHECK_FALSE(system.wants(recipe, "usr/bin/sh"));
    CHECK_FALSE(system.wants(recipe, "etc"));
}

TEST_CASE("the programs are the kernel and its package, and change with either", "[image]") {
    const test::TemporaryDirectory scratch;
    const std::string program = scratch.path() + "/kernel";
    const std::string package = scratch.path() + "/python";
    test::write_host_file(program, "elf", 0755);
    test::write_host_file(package + "/cellkeep_kernel/__init__.py", "");
    test::write_host_file(package + "/main.cpp", "int main() {}");
    const auto recipe = programs_recipe(program, package);
    REQUIRE(recipe.has_value());
    const std::string before = recipe.value().fingerprint;
    CHECK(recipe.value().kind == Kind::kPrograms);
    CHECK(recipe.value().copies.size() == 2);
    test::write_host_file(package + "/main.cpp", "int main() { return 1; }");
    CHECK(programs_recipe(program, package).value().fingerprint == before);
    test::write_host_file(package + "/cellkeep_kernel/more.py", "");
    const std::string with_more = programs_recipe(program, package).value().fingerprint;
    CHECK(with_more != before);
    test::write_host_file(program, "another elf", 0755);
    CHECK(programs_recipe(program, package).value().fingerprint != with_more);
}

}  // namespace
}  // namespace cellkeep::image
