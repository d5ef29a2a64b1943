// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/conda/conda_file.hpp"

#include "kernel-manager/environments/requirements.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::environments {
namespace {

constexpr const char* kCondaFile = R"yaml(
name: analysis
channels:
  - conda-forge
  - defaults
dependencies:
  - python=3.12
  - pip
  - conda-forge::numpy=1.26      # a comment
  - pandas >=2,<3
  - matplotlib-base=3.9.2=py312hd3ec401_1
  - pytorch
  - scikit-learn[version='>=1.4']
  - pip:
      - requests[socks] >= 2.31; python_version >= '3.9'
      - rich==14.1.0
prefix: /opt/conda/envs/analysis
variables: {}
)yaml";

std::string of_dependencies(const std::string& lines) {
    return "name: a\ndependencies:\n" + lines;
}

TEST_CASE("a conda file asks for packages of PyPI and for a Python", "[environments]") {
    const CondaFile file = read_conda_file(kCondaFile).value();
    CHECK(
        file.requirements ==
        "numpy==1.26.*\npandas>=2,<3\nmatplotlib==3.9.2\ntorch\nscikit-learn>=1.4\n"
        "requests[socks] >= 2.31; python_version >= '3.9'\nrich==14.1.0\n");
    CHECK(parse_requirements(file.requirements).value().size() == 7);
    CHECK(file.python == "3.12");
    // That it asks for nothing, who makes the environment says.
    CHECK(read_conda_file("dependencies:\n").value().requirements.empty());
    CHECK(read_conda_file("dependencies: [pip: ]\n").value().requirements.empty());
}

TEST_CASE("the version of Python is its first two numbers", "[environments]") {
    const std::vector<std::pair<std::string, std::optional<std::string>>> named{
        {"python", std::nullopt},
        {"python=*", std::nullopt},
        {"python=3.12", "3.12"},
        {"python=3.12.1", "3.12"},
        {"python==3.12.*", "3.12"},
        {"python 3.9.18 h955ad1f_0", "3.9"},
        {"conda-forge::python=3.10", "3.10"}};
    for (const auto& [text, python] : named) {
        CAPTURE(text);
        CHECK(read_conda_file(of_dependencies("- " + text)).value().python == python);
    }
    CHECK(read_conda_file(of_dependencies("- python=3.12\n- python=3.12.1\n")).has_value());
    for (const char* refused :
         {"- python>=3.9",
          "- python=3",
          "- python=2.7",
          "- python=3.12,<3.13",
          "- python=3.12rc1",
          "- python<3.12",
          "- python=3.11|3.12",
          "- python=3.9=*_pypy",
          "- python=3.11\n- python=3.12"}) {
        CAPTURE(refused);
        CHECK(read_conda_file(of_dependencies(refused)).has_error());
    }
}

TEST_CASE("all dependencies that are refused are named at once", "[environments]") {
    const auto found = read_conda_file(of_dependencies(
        "- numpy\n- gdal>=3\n- openssl=3.0.13=h7f8727e_0\n- scipy=1|2\n- python>=3.9\n"
        "- pip:\n  - -r more.txt\n  - rich\n  - ./own\n"));
    REQUIRE(found.has_error());
    CHECK(
        found.error().message() ==
        "gdal, openssl: PyPI is not known to have the same project under this name; "
        "scipy=1|2: alternatives (|) are not taken: name one range of versions; "
        "python>=3.9: name one version of Python, as in python=3.12; "
        "-r more.txt: options are not taken: --index names the index, and every line a package; "
        "./own: only packages of the index are taken, by name: no address, file, folder or "
        "variable");
    CHECK_THAT(found.error().hint(), Catch::Matchers::Contains("below \"pip:\""));
    CHECK(read_conda_file(of_dependencies("- scipy=1|2")).error().hint().empty());
}

TEST_CASE("kRefusedNamedMax: an error names so many, and counts the others", "[environments]") {
    std::string lines;
    for (std::size_t i = 0; i < kRefusedNamedMax; ++i) {
        lines += "- r-" + std::to_string(i) + "\n";
    }
    const std::string last = "r-" + std::to_string(kRefusedNamedMax - 1);
    const std::string all = read_conda_file(of_dependencies(lines)).error().message();
    CHECK_THAT(all, Catch::Matchers::Contains(last + ": PyPI"));
    CHECK_THAT(all, !Catch::Matchers::Contains("more"));
    const std::string more =
        read_conda_file(of_dependencies(lines + "- r-last\n- r-more=1|2\n")).error().message();
    CHECK(more == all + "; and 2 more");
}

TEST_CASE("an error shows no more of a file than a terminal can bear", "[environments]") {
    const std::string message =
        read_conda_file(of_dependencies("- \"a\\e[1m\\n" + std::string(300, 'b') + "\"\n"))
            .error()
            .message();
    CHECK_THAT(message, Catch::Matchers::StartsWith("a?[1m?bbb"));
    CHECK(message.find('\x1b') == std::string::npos);
    CHECK(message.size() < 200);
}

TEST_CASE("what is no conda file, or asks for something else, is refused", "[environments]") {
    const std::vector<std::pair<std::string, std::string>> refused{
        {"", "no map with the key dependencies"},
        {"numpy", "no map with the key dependencies"},
        {"- numpy", "no map with the key dependencies"},
        {"name: a", "no map with the key dependencies"},
        {"dependencies: [numpy", "no YAML"},
        {"dependencies: numpy", "line 1: dependencies is no list"},
        {"dependencies: {numpy: 1}", "dependencies is no list"},
        {"name: a\nnumpy: 1\ndependencies:\n", "line 2: the key numpy is not known"},
        {"dependencies: []\nDependencies: []", "line 2: the key Dependencies is not known"},
        {"dependencies: []\ndependencies: []", "twice"},
        {"dependencies: []\nvariables: {A: b}", "line 2: variables are not taken"},
        {"dependencies: []\nvariables: [a]", "variables are not taken"},
        {"dependencies: []\nvariables: a", "variables are not taken"},
        {"dependencies: []\ncategory: main", "the key category is not known"},
        {"dependencies: []\nplatforms: [linux-64]", "the key platforms is not known"},
        {"dependencies: &a [numpy]\n", "anchors"},
        {"dependencies: !!seq [numpy]\n", "tags"},
        {of_dependencies("- \n"), "a dependency is text"},
        {of_dependencies("- [numpy]\n"), "line 3: a dependency is text"},
        {of_dependencies("- numpy: 1\n"), "line 3: a dependency is text"},
        {of_dependencies("- {}\n"), "line 3: a dependency is text"},
        {of_dependencies("- {pip: [rich], npm: [left]}\n"), "line 3: a dependency is text"},
        {of_dependencies("- pip: rich\n"), "line 3: pip is no list"},
        {of_dependencies("- pip: {rich: 1}\n"), "pip is no list"},
        {of_dependencies("- pip: [[rich]]\n"), "something else than text"},
        {of_dependencies("- pip: [rich, ~]\n"), "something else than text"},
        {of_dependencies("- pip: ['']\n"), "names no package"},
        {of_dependencies("- pip: [';a']\n"), "by name"},
        {of_dependencies("- pip: ['-e .']\n"), "options are not taken"},
        {of_dependencies("- pip: ['--extra-index-url https://x.example']\n"), "options"},
        {of_dependencies("- pip: ['rich @ https://x.example/r.whl']\n"), "by name"},
        {of_dependencies("- pip: [\"rich\\n-e .\"]\n"), "in one line"},
        {of_dependencies("- pip: ['$HOME']\n"), "by name"},
        {of_dependencies("- ''\n"), "begin with the name"},
        {of_dependencies("- numpy\n  - pandas\n"), "not understood"},
        {of_dependencies("- \"numpy\\n-e .\"\n"), "begin with the name"},
        {of_dependencies("- \"numpy>=1\\n--index-url=x\"\n"), "not understood"},
        {of_dependencies("- redis\n"), "PyPI is not known to have"}};
    for (const auto& [text, reason] : refused) {
        CAPTURE(text);
        const auto found = read_conda_file(text);
        REQUIRE(found.has_error());
        CHECK(found.error().code() == ErrorCode::kInvalidArgument);
        CHECK_THAT(found.error().message(), Catch::Matchers::Contains(reason));
    }
}

TEST_CASE("kCondaFileBytesMax: a longer conda file is not read", "[environments][limits]") {
    std::string file = kCondaFile;
    file += "#" + std::string(kCondaFileBytesMax - file.size() - 1, 'x');
    REQUIRE(file.size() == kCondaFileBytesMax);
    CHECK(read_conda_file(file).has_value());
    file += "x";
    CHECK(read_conda_file(file).error().code() == ErrorCode::kLimitExceeded);
}

}  // namespace
}  // namespace cellkeep::environments
