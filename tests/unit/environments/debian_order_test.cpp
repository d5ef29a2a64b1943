// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/debian/debian_order.hpp"

#include "kernel-manager/environments/debian/debian_host.hpp"
#include "kernel-manager/environments/debian/debian_plan.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <string>
#include <vector>

namespace cellkeep::environments {
namespace {

using Names = std::vector<std::string>;

TEST_CASE(
    "packages of Debian are asked for by name, or by name and version", "[environments][debian]") {
    CHECK(
        check_debian_packages({"graphviz", "g++", "jq=1.6-2.1", "graphviz", "0ad=1:2.0~rc1+b2"})
            .value() == Names{"0ad=1:2.0~rc1+b2", "g++", "graphviz", "jq=1.6-2.1"});
    CHECK(check_debian_packages({}).value().empty());
}

TEST_CASE("what apt-get would take for something else is refused", "[environments][debian]") {
    for (const std::string& package :
         {std::string(),
          std::string("a"),
          std::string("-y"),
          std::string("--download-only"),
          std::string("graphviz-"),
          std::string("jq=1.6-"),
          std::string("jq=1.6+"),
          std::string("graphviz/stable"),
          std::string("./graphviz.deb"),
          std::string("/tmp/graphviz.deb"),
          std::string("graphviz:i386"),
          std::string("graph*"),
          std::string("graph?viz"),
          std::string("?essential"),
          std::string("~n^g"),
          std::string("task^"),
          std::string("Graphviz"),
          std::string("graph viz"),
          std::string("graph\nviz"),
          std::string("gr\303\244ph"),
          std::string("graphviz="),
          std::string("graphviz=x1"),
          std::string("graphviz=1 2"),
          std::string("graphviz=1/2"),
          std::string("=1"),
          std::string(kDebianNameBytesMax + 1, 'a'),
          "a=" + std::string(kDebianVersionBytesMax + 1, '1')}) {
        CAPTURE(package);
        CHECK(check_debian_packages({package}).error().code() == ErrorCode::kInvalidArgument);
    }
    CHECK(
        check_debian_packages({"jq=1.6", "jq=1.7"}).error().code() == ErrorCode::kInvalidArgument);
    CHECK(check_debian_packages({"jq=1.6", "jq"}).error().code() == ErrorCode::kInvalidArgument);
    Names many(kDebianWantedMax + 1, "jq");
    CHECK(check_debian_packages(many).error().code() == ErrorCode::kLimitExceeded);
    many.pop_back();
    CHECK(check_debian_packages(many).has_value());
}

TEST_CASE("apt-get's plan is read", "[environments][debian]") {
    const auto plan = read_debian_plan(
        "NOTE: any\n"
        "Inst libcdt5 (2.42.2-7+deb12u1 Debian:12.15/oldstable [amd64])\n"
        "Inst libx11-data (2:1.8.4-2 Debian:12/a, Debian-Security:12/b [all]) []\n"
        "Conf libcdt5 (2.42.2-7+deb12u1 Debian:12.15/oldstable [amd64])\n"
        "Inst libx:amd64 (1 local [amd64])\n",
        "amd64");
    REQUIRE(plan.has_value());
    CHECK(
        plan.value() == std::vector<DebianPackage>{
                            {"libcdt5", "2.42.2-7+deb12u1", "amd64"},
                            {"libx11-data", "2:1.8.4-2", "all"},
                            {"libx", "1", "amd64"}});
    CHECK(file_of(plan.value()[1]) == "libx11-data_2%3a1.8.4-2_all.deb");
    CHECK(read_debian_plan("", "amd64").value().empty());
}

TEST_CASE("a plan that changes what sessions have is refused by name", "[environments][debian]") {
    const auto upgrade =
        read_debian_plan("Inst libc6 [2.36-9] (2.37-1 Debian:13 [amd64])\n", "amd64");
    REQUIRE(upgrade.has_error());
    CHECK(upgrade.error().code() == ErrorCode::kConflict);
    CHECK(
        upgrade.error().message() ==
        "it needs libc6 2.37-1, and sessions have 2.36-9 of this machine");
    const auto removal = read_debian_plan("Remv mawk [1.3.4]\n", "amd64");
    CHECK(removal.error().code() == ErrorCode::kConflict);
    CHECK(
        read_debian_plan("Inst wine (1 x [i386])\n", "amd64").error().code() ==
        ErrorCode::kInvalidArgument);
}

TEST_CASE("a version that sessions have in another one is refused", "[environments][debian]") {
    const std::map<std::string, std::string> there{{"bash", "5.2-1"}};
    CHECK(check_versions_there({"bash", "bash=5.2-1", "jq=1"}, there).has_value());
    for (const char* wanted : {"bash=5", "bash=5.2-10", "bash=5.2-1+b1"}) {
        CAPTURE(wanted);
        CHECK(check_versions_there({"jq", wanted}, there).error().code() == ErrorCode::kConflict);
    }
}

TEST_CASE("a plan that says something else is none", "[environments][debian]") {
    for (const char* said :
         {"Inst\t",
          "Inst ",
          "Inst x\n",
          "Inst ab ()\n",
          "Inst ab (1)\n",
          "Inst ab (1 x [])\n",
          "Inst ../ab (1 x [amd64])\n",
          "Inst ab (1/2 x [amd64])\n",
          "Inst ab 1 x [amd64]\n"}) {
        CAPTURE(said);
        const auto plan = read_debian_plan(said, "amd64");
        CHECK(
            (plan.has_value() ? plan.value().empty() && std::string(said) == "Inst\t"
                              : plan.error().code() == ErrorCode::kProtocol));
    }
    std::string many;
    for (std::size_t i = 0; i <= kDebianPackagesMax; ++i) {
        many += "Inst p" + std::to_string(i) + " (1 x [all])\n";
    }
    CHECK(read_debian_plan(many, "amd64").error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("a release is its system and its name", "[environments][debian]") {
    CHECK(
        debian_release_of("PRETTY_NAME=\"Debian\"\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\n"
                          "ID=debian\n") == "debian bookworm");
    CHECK(debian_release_of("ID=\"ubuntu\"\nVERSION_CODENAME='jammy'") == "ubuntu jammy");
    for (const char* text :
         {"",
          "ID=debian",
          "VERSION_CODENAME=bookworm",
          "ID=\nVERSION_CODENAME=x",
          "XID=a\nVERSION_CODENAME=x",
          "ID=a b\nVERSION_CODENAME=x",
          "ID=a\nVERSION_CODENAME=x/y"}) {
        CAPTURE(text);
        CHECK(debian_release_of(text).empty());
    }
}

TEST_CASE(
    "of a status file the installed packages of these names are kept", "[environments][debian]") {
    const std::string status =
        "Package: one\nStatus: install ok installed\nVersion: 1\nDescription: x\n more\n\n"
        "Package: two\nStatus: deinstall ok config-files\nVersion: 1\n\n"
        "Package: three\nStatus: install ok installed\nVersion: 3\n\n\n"
        "Status: hold ok installed\nPackage: four\nVersion: 4\n";
    CHECK(
        status_about(status, {"one", "two", "four"}) ==
        "Package: one\nStatus: install ok installed\nVersion: 1\nDescription: x\n more\n\n"
        "Status: hold ok installed\nPackage: four\nVersion: 4\n\n");
    CHECK(status_about(status, {}).empty());
    CHECK(status_about("", {"one"}).empty());
}

}  // namespace
}  // namespace cellkeep::environments
