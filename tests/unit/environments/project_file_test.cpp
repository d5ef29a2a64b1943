// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/project_file.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace cellkeep::environments {
namespace {

using Extras = std::vector<std::string>;

constexpr const char* kProject = R"toml(
[build-system]
requires = ["hatchling"]
[project]
name = "analysis"
version = "1.0"
requires-python = ">=3.10"
dependencies = [
    "pandas>=2,<3",  # a comment of the file
    "requests[socks] >= 2.31; python_version >= '3.9'",
]
[project.optional-dependencies]
plots = ["matplotlib"]
Maps_and-more = ["shapely>=2", "pyproj"]
[tool.uv]
index-url = "https://elsewhere.example/simple"
)toml";

TEST_CASE("a project asks for its dependencies, and for those of named extras", "[environments]") {
    CHECK(
        requirements_of_project(kProject, {}).value() ==
        "pandas>=2,<3\nrequests[socks] >= 2.31; python_version >= '3.9'\n");
    CHECK(
        requirements_of_project(kProject, {"plots", "maps-and-more"}).value() ==
        "pandas>=2,<3\nrequests[socks] >= 2.31; python_version >= '3.9'\n"
        "matplotlib\nshapely>=2\npyproj\n");
    // That it asks for nothing, who makes the environment says.
    CHECK(requirements_of_project("[project]\nname = 'a'\n", {}).value().empty());
}

TEST_CASE("a project that names itself means its extras", "[environments]") {
    const std::string project =
        "[project]\nname = 'My.Project'\ndependencies = ['alpha', 'my-project']\n"
        "[project.optional-dependencies]\nplots = ['beta']\nmaps = ['gamma', 'my-project[all]']\n"
        "all = ['my_project[plots, maps]', 'MY-project[plots]']\nbad = ['my-project[none]']\n";
    CHECK(requirements_of_project(project, {}).value() == "alpha\n");
    CHECK(requirements_of_project(project, {"all"}).value() == "alpha\nbeta\ngamma\n");
    CHECK(requirements_of_project(project, {"maps", "plots"}).value() == "alpha\ngamma\nbeta\n");
    CHECK(
        requirements_of_project(project, {"bad"}).error().message() ==
        "the project has no extra none");
}

TEST_CASE("what is no project, or leads past the index, is refused", "[environments]") {
    const std::vector<std::pair<std::string, std::string>> refused{
        {"", "no table [project]"},
        {"not toml", "no TOML"},
        {"[project]\ndependencies = [", "line"},
        {"project = 5", "no table [project]"},
        {"[tool.poetry.dependencies]\npandas = '^2'\n", "no table [project]"},
        {"[project]\ndynamic = ['dependencies']", "dependencies are dynamic"},
        {"[project]\ndynamic = ['version', 'optional-dependencies']", "are dynamic"},
        {"[project]\ndependencies = 'pandas'", "project.dependencies is no list"},
        {"[project]\ndependencies = [1]", "something else than text"},
        {"[project]\ndependencies = [['pandas']]", "something else than text"},
        {"[project]\ndependencies = ['']", "names no package"},
        {"[project]\ndependencies = ['-e .']", "options are not taken"},
        {"[project]\ndependencies = ['pandas @ https://x.example/p.whl']", "by name"},
        {"[project]\ndependencies = ['./local']", "by name"},
        {"[project]\ndependencies = [\"a\\n--index-url https://x.example\"]", "in one line"},
        {"[project]\ndependencies = [\"a \\\\\"]", "in one line"},
        {"[project]\ndependencies = ['a # b']", "in one line"}};
    for (const auto& [text, reason] : refused) {
        CAPTURE(text);
        const auto found = requirements_of_project(text, {});
        REQUIRE(found.has_error());
        CHECK(found.error().code() == ErrorCode::kInvalidArgument);
        CHECK_THAT(found.error().message(), Catch::Matchers::Contains(reason));
    }
    const auto extra = requirements_of_project(kProject, {"tests"});
    REQUIRE(extra.has_error());
    CHECK(extra.error().message() == "the project has no extra tests");
    CHECK(requirements_of_project("[project]\n", {"plots"}).has_error());
    CHECK(requirements_of_project("[project]\noptional-dependencies = 1", {"a"}).has_error());
}

TEST_CASE("kProjectFileBytesMax: a longer file is not read", "[environments][limits]") {
    std::string file = kProject;
    file += "#" + std::string(kProjectFileBytesMax - file.size() - 1, 'x');
    REQUIRE(file.size() == kProjectFileBytesMax);
    CHECK(requirements_of_project(file, {}).has_value());
    file += "x";
    CHECK(requirements_of_project(file, {}).error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("a project that is nested very deep is not parsed", "[environments][limits]") {
    std::string key = "a";
    for (int i = 0; i < 100'000; ++i) {
        key += ".a";
    }
    for (const std::string& text :
         {kProject + ("\n[" + key + "]\n"),
          kProject + ("\n" + key + " = 1\n"),
          "x = " + std::string(100'000, '[') + "\n" + kProject}) {
        CHECK(requirements_of_project(text, {}).error().code() == ErrorCode::kLimitExceeded);
    }
    CHECK(requirements_of_project(kProject + std::string("\n[a.a.a]\na.a = 1\n"), {}).has_value());
}

}  // namespace
}  // namespace cellkeep::environments
