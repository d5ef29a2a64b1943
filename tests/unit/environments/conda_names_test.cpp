// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/conda/conda_names.hpp"

#include "kernel-manager/environments/distributions.hpp"
#include "kernel-manager/environments/package_name.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

namespace cellkeep::environments {
namespace {

TEST_CASE("known names of conda have one of PyPI", "[environments]") {
    CHECK(pypi_name("numpy") == "numpy");
    CHECK(pypi_name("absl-py") == "absl-py");
    CHECK(pypi_name("zstandard") == "zstandard");
    CHECK(pypi_name("typing_extensions") == "typing-extensions");
    CHECK(pypi_name("pytorch") == "torch");
    CHECK(pypi_name("matplotlib-base") == "matplotlib");
    CHECK(pypi_name("py-opencv") == "opencv-python-headless");
    CHECK(pypi_name("python-duckdb") == "duckdb");
}

TEST_CASE("libraries and programs of conda are not looked up at PyPI", "[environments]") {
    for (const char* name :
         {"",
          "-",
          "numpy-",
          "numpy2",
          "gdal",
          "r-base",
          "openssl",
          "libgcc-ng",
          "_libgcc_mutex",
          "cudatoolkit",
          "nodejs",
          "mkl",
          "compilers",
          "graphviz",
          "redis",
          "igraph",
          "brotli",
          "lmdb",
          "tzdata",
          "torch",
          "tables",
          "python",
          "pip",
          "tensorflow-gpu",
          "pytorch-gpu",
          "pytorch-cuda",
          "cupy",
          "sqlite",
          "conda",
          "ca-certificates"}) {
        CAPTURE(name);
        CHECK_FALSE(pypi_name(name).has_value());
    }
}

TEST_CASE("the names are normalised, in order, and each is there once", "[environments]") {
    const auto same = same_names();
    CHECK(std::is_sorted(same.begin(), same.end()));
    CHECK(std::adjacent_find(same.begin(), same.end()) == same.end());
    for (const std::string_view name : same) {
        CAPTURE(name);
        CHECK(normalised(name) == name);
        CHECK(check_package(name).has_value());
        CHECK(pypi_name(name) == name);
    }
    const auto pairs = other_names();
    CHECK(std::is_sorted(pairs.begin(), pairs.end()));
    for (const auto& [conda, pypi] : pairs) {
        CAPTURE(conda);
        CHECK(normalised(conda) == conda);
        CHECK(normalised(pypi) == pypi);
        CHECK(check_package(pypi).has_value());
        CHECK(conda != pypi);
        CHECK(pypi_name(conda) == pypi);
    }
}

}  // namespace
}  // namespace cellkeep::environments
