// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/kernel/kernelspec.hpp"

#include "kernel-manager/cli/kernel/kernelspec_paths.hpp"
#include "protocol/support/syscall.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <filesystem>
#include <map>

namespace cellkeep::cli {
namespace {

namespace fs = std::filesystem;
using cellkeep::test::TemporaryDirectory;
using nlohmann::json;
using Directories = std::vector<std::string>;

Environment environment_of(std::map<std::string, std::string> variables) {
    return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
}

json example(const std::string& display_name = "Python 3 (Cellkeep)") {
    Kernelspec spec;
    spec.program = "/opt/cellkeep/bin/cellkeep";
    spec.display_name = display_name;
    spec.language = "python";
    return to_json(spec);
}

void write_foreign(const std::string& directory, const std::string& text) {
    fs::create_directories(directory);
    REQUIRE(write_file_atomically(directory + "/kernel.json", text, 0644).has_value());
}

std::size_t entries_in(const std::string& directory) {
    const fs::directory_iterator begin(directory);
    return static_cast<std::size_t>(std::distance(begin, fs::directory_iterator()));
}

TEST_CASE("the user's directory is found as jupyter_core finds it", "[cli][kernelspec]") {
    const auto find = [](std::map<std::string, std::string> variables) {
        return user_kernels_directory(environment_of(std::move(variables)));
    };
    CHECK(find({{"HOME", "/h"}}).value() == "/h/.local/share/jupyter/kernels");
    CHECK(find({{"HOME", "/h"}, {"XDG_DATA_HOME", "/x"}}).value() == "/x/jupyter/kernels");
    CHECK(
        find({{"HOME", "/h"}, {"XDG_DATA_HOME", "/x"}, {"JUPYTER_DATA_DIR", "/j"}}).value() ==
        "/j/kernels");
    REQUIRE(find({}).has_error());
    CHECK(find({}).error().hint().find("--prefix") != std::string::npos);
}

TEST_CASE("Jupyter's search order, each directory once", "[cli][kernelspec]") {
    CHECK(
        kernels_directories(environment_of(
            {{"HOME", "/h"},
             {"JUPYTER_PATH", "/a:/b::/a"},
             {"VIRTUAL_ENV", "/v"},
             {"CONDA_PREFIX", "/usr"}})) == Directories{
                                                "/a/kernels",
                                                "/b/kernels",
                                                "/h/.local/share/jupyter/kernels",
                                                "/v/share/jupyter/kernels",
                                                "/usr/share/jupyter/kernels",
                                                "/usr/local/share/jupyter/kernels"});
}

TEST_CASE("a kernel.json says what Jupyter needs to know", "[cli][kernelspec]") {
    const json spec = example();
    CHECK(
        spec["argv"] == json({"/opt/cellkeep/bin/cellkeep", "kernel", "-f", "{connection_file}"}));
    CHECK(spec["interrupt_mode"] == "message");
    CHECK(spec["language"] == "python");
    // JEP 66: from 5.6 on Jupyter would expect the handshake.
    CHECK(spec["kernel_protocol_version"] == "5.5");
    CHECK(spec["metadata"]["debugger"] == false);
    Kernelspec more;
    more.debugger = true;
    more.notebook.memory_mb = 100;
    CHECK(to_json(more)["metadata"]["debugger"] == true);
    CHECK(to_json(more)["argv"].back() == "100");
}

TEST_CASE("names that Jupyter would not take are refused", "[cli][kernelspec]") {
    for (const char* name : {"cellkeep-python", "a", "A.b_c-1", "python3"}) {
        CHECK(check_kernelspec_name(name).has_value());
    }
    CHECK(check_kernelspec_name(std::string(128, 'x')).has_value());
    for (const std::string& name :
         {std::string(),
          std::string("a b"),
          std::string("a/b"),
          std::string(".."),
          std::string(".hidden"),
          std::string("ä"),
          std::string("a\0b", 3),
          std::string(129, 'x')}) {
        CAPTURE(name);
        CHECK(check_kernelspec_name(name).has_error());
    }
}

TEST_CASE("a kernelspec is written whole and replaced whole", "[cli][kernelspec]") {
    const TemporaryDirectory directory;
    const std::string kernels = directory.path() + "/share/jupyter/kernels";
    REQUIRE(write_kernelspec(kernels, "k", example("One"), Overwrite::kOwn).has_value());
    REQUIRE(write_kernelspec(kernels, "k", example("Two"), Overwrite::kOwn).has_value());
    CHECK(entries_in(kernels) == 1);
    CHECK(entries_in(kernels + "/k") == 4);
    const auto found = list_kernelspecs({kernels});
    REQUIRE(found.size() == 1);
    CHECK(found[0].name == "k");
    CHECK(found[0].display_name == "Two");
    CHECK(found[0].program == "/opt/cellkeep/bin/cellkeep");
    CHECK_FALSE(found[0].hidden);
    REQUIRE(remove_kernelspec(kernels, "k", Overwrite::kOwn).has_value());
    CHECK(entries_in(kernels) == 0);
    CHECK(remove_kernelspec(kernels, "k", Overwrite::kOwn).error().code() == ErrorCode::kNotFound);
}

TEST_CASE(
    "a kernelspec that Cellkeep did not write is neither replaced nor removed",
    "[cli][kernelspec]") {
    const TemporaryDirectory directory;
    const std::string kernels = directory.path();
    const std::string theirs = kernels + "/k";
    std::string text;
    SECTION("another kernel's") {
        text = R"({"argv": ["x"], "metadata": {"debugger": true}})";
    }
    SECTION("not JSON") {
        text = "{";
    }
    SECTION("metadata that is no object") {
        text = R"({"metadata": ["cellkeep"]})";
    }
    write_foreign(theirs, text);
    CHECK(
        write_kernelspec(kernels, "k", example(), Overwrite::kOwn).error().code() ==
        ErrorCode::kConflict);
    CHECK(remove_kernelspec(kernels, "k", Overwrite::kOwn).error().code() == ErrorCode::kConflict);
    CHECK(read_file(theirs + "/kernel.json", 1000).value() == text);
    CHECK(entries_in(kernels) == 1);
    CHECK(list_kernelspecs({kernels}).empty());

    REQUIRE(write_kernelspec(kernels, "k", example(), Overwrite::kAny).has_value());
    CHECK(entries_in(kernels) == 1);
    CHECK(list_kernelspecs({kernels}).size() == 1);
}

TEST_CASE("a link in the way is replaced, not followed", "[cli][kernelspec]") {
    const TemporaryDirectory directory;
    const std::string victim = directory.path() + "/victim";
    write_foreign(victim, "{}");
    const std::string kernels = directory.path() + "/kernels";
    fs::create_directory(kernels);
    fs::create_directory_symlink(victim, kernels + "/k");
    CHECK(write_kernelspec(kernels, "k", example(), Overwrite::kOwn).has_error());
    REQUIRE(write_kernelspec(kernels, "k", example(), Overwrite::kAny).has_value());
    CHECK(entries_in(kernels) == 1);
    CHECK(read_file(victim + "/kernel.json", 100).value() == "{}");
}

TEST_CASE("a kernelspec behind another of its name is shown as hidden", "[cli][kernelspec]") {
    const TemporaryDirectory first;
    const TemporaryDirectory second;
    write_foreign(first.path() + "/k", R"({"argv": []})");
    REQUIRE(write_kernelspec(second.path(), "k", example(), Overwrite::kOwn).has_value());
    const auto found = list_kernelspecs({"/nonexistent", first.path(), second.path()});
    REQUIRE(found.size() == 1);
    CHECK(found[0].hidden);
}

}  // namespace
}  // namespace cellkeep::cli
