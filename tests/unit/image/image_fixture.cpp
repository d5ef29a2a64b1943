// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/image/image_fixture.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace cellkeep::test {

namespace fs = std::filesystem;

namespace {

image::Store open_store(const std::string& path) {
    auto store = image::Store::open(path);
    REQUIRE(store.has_value());
    return std::move(store).value();
}

}  // namespace

void write_host_file(const std::string& path, const std::string& text, unsigned mode) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
    REQUIRE(::chmod(path.c_str(), mode) == 0);
}

std::string slurp(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

void change(const std::string& path, const std::string& text) {
    REQUIRE(::chmod(path.c_str(), 0644) == 0);
    std::ofstream(path) << text;
    REQUIRE(::chmod(path.c_str(), 0444) == 0);
}

ImageFixture::ImageFixture()
    : host(scratch.path() + "/host"),
      store_path(scratch.path() + "/store"),
      store(open_store(store_path)) {
    write_host_file(host + "/bin/tool", "#!/bin/sh\n", 0755);
    write_host_file(host + "/share/data", "the first\n");
    fs::create_symlink("../share/data", host + "/bin/link");
}

image::Recipe ImageFixture::recipe(char fingerprint) const {
    image::Recipe recipe;
    recipe.kind = image::Kind::kPrograms;
    recipe.fingerprint = std::string(64, fingerprint);
    recipe.copies = {
        {image::Copy::How::kTree, host + "/bin", "bin"},
        {image::Copy::How::kTree, host + "/share", "share"}};
    return recipe;
}

image::ImageRecord ImageFixture::build(const image::Recipe& what) {
    auto made = store.build(what, image::Format::kTree, [](const std::string&) {});
    INFO((made.has_error() ? made.error().message() : ""));
    REQUIRE(made.has_value());
    return std::move(made).value();
}

std::string ImageFixture::tree_of(const image::ImageRecord& record) const {
    return store.directory_of(record) + "/tree";
}

std::size_t ImageFixture::folders() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(store_path)) {
        count += entry.is_directory() ? 1U : 0U;
    }
    return count;
}

}  // namespace cellkeep::test
