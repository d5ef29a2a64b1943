// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/environments/environments_fixture.hpp"

#include "kernel-manager/environments/python_tree.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace cellkeep::test {

namespace fs = std::filesystem;
using environments::EnvironmentStore;

namespace {

/// Installs a module for each requirement NAME==VERSION, and does odd things for some names.
constexpr const char* kFakeUv = R"sh(#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
        --python) packages=${2%/bin/python}/lib/python)sh" CELLKEEP_PYTHON_VERSION
                                R"sh(/site-packages ;;
        --requirements) requirements=$2 ;;
        --constraints) constraints=$2 ;;
    esac
    arguments="$arguments $1"
    shift
done
while read -r line; do
    name=${line%%==*}
    case $name in
        conflict) echo "No solution found"; exit 1 ;;
        endless) exec sleep infinity ;;
        big) head -c 2000000 /dev/zero > "$packages/big.bin" ;;
        tell)
            env | sort > "$packages/environment.txt"
            echo "$arguments" > "$packages/arguments.txt"
            cp "$constraints" "$packages/constraints.txt" ;;
        hidden)
            echo secret > "$packages/hidden.txt"
            chmod 600 "$packages/hidden.txt" ;;
    esac
    mkdir -p "$packages/$name" "$packages/$name.dist-info"
    printf 'Name: %s\nVersion: %s\n' "$name" "${line##*==}" > "$packages/$name.dist-info/METADATA"
    echo "VERSION = '${line##*==}'" > "$packages/$name/__init__.py"
    echo "import os; open('ran', 'w')" > "$packages/$name.pth"
done < "$requirements"
)sh";

EnvironmentStore open_store(
    const std::string& directory, const environments::EnvironmentBounds& bounds) {
    auto store = EnvironmentStore::open(directory, bounds);
    REQUIRE(store.has_value());
    return std::move(store).value();
}

}  // namespace

EnvironmentsFixture::EnvironmentsFixture(const environments::EnvironmentBounds& bounds)
    : uv(scratch.file("uv")),
      directory(scratch.file("environments")),
      store(open_store(directory, bounds)) {
    std::ofstream(uv) << kFakeUv;
    REQUIRE(::chmod(uv.c_str(), 0755) == 0);
}

environments::EnvironmentOrder EnvironmentsFixture::order(
    const std::string& name, const std::string& requirements) const {
    return {name, requirements, "http://packages.example/simple", uv, scratch.file("default")};
}

environments::NamedRecord EnvironmentsFixture::create(
    const std::string& name, const std::string& requirements) {
    auto made = store.create(order(name, requirements), [](const std::string&) {});
    INFO((made.has_error() ? made.error().message() : ""));
    REQUIRE(made.has_value());
    CHECK(left_over() == 0);
    return std::move(made).value();
}

Error EnvironmentsFixture::refusal(const environments::EnvironmentOrder& order) {
    const auto made = store.create(order, [](const std::string&) {});
    REQUIRE(made.has_error());
    CHECK(left_over() == 0);
    return made.error();
}

std::string EnvironmentsFixture::packages(const std::string& name) {
    const auto found = store.find(name);
    REQUIRE(found.has_value());
    const auto used = store.use(found.value());
    INFO((used.has_error() ? used.error().message() : ""));
    REQUIRE(used.has_value());
    return used.value().root + environments::kImageFolder + "/lib/python" +
           environments::kPythonVersion + "/site-packages";
}

std::size_t EnvironmentsFixture::left_over() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(directory)) {
        const std::string name = entry.path().filename().string();
        count += name != "images" && name != "names" && name != "lock" ? 1U : 0U;
    }
    return count;
}

}  // namespace cellkeep::test
