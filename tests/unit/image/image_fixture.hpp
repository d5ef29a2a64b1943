// SPDX-License-Identifier: Apache-2.0
//
// A small host to make images of, and a store to keep them in; gone with the test.
#pragma once

#include "kernel-manager/image/image_store.hpp"
#include "tests/support/temporary_directory.hpp"

#include <string>

namespace cellkeep::test {

/// For a build whose progress is not read.
inline const image::Progress kQuiet = [](const std::string&) {};

/// Creates the folders above it, too.
void write_host_file(const std::string& path, const std::string& text, unsigned mode = 0644);
std::string slurp(const std::string& path);
void change(const std::string& path, const std::string& text);

struct ImageFixture {
    ImageFixture();

    /// A program, a data file and a link, as fingerprint says.
    image::Recipe recipe(char fingerprint = 'a') const;
    /// What must be there to go on.
    image::ImageRecord build(const image::Recipe& recipe);
    std::string tree_of(const image::ImageRecord& record) const;
    std::size_t folders() const;  // in the store, whole or not

    TemporaryDirectory scratch;
    std::string host;
    std::string store_path;
    image::Store store;
};

}  // namespace cellkeep::test
