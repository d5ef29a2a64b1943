// SPDX-License-Identifier: Apache-2.0
//
// A store of environments, and a program in uv's place that needs no index; gone with the test.
#pragma once

#include "kernel-manager/environments/environment_store.hpp"
#include "tests/support/temporary_directory.hpp"

#include <fstream>
#include <iterator>
#include <string>

namespace cellkeep::test {

inline std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

struct EnvironmentsFixture {
    explicit EnvironmentsFixture(const environments::EnvironmentBounds& bounds = {});

    environments::EnvironmentOrder order(
        const std::string& name, const std::string& requirements) const;
    /// What must be there to go on.
    environments::NamedRecord create(const std::string& name, const std::string& requirements);
    /// The error that must come, and nothing of the environment be left.
    Error refusal(const environments::EnvironmentOrder& order);
    /// The folder of an environment's packages, verified.
    std::string packages(const std::string& name);
    /// Entries of the store's folder that are neither images, names nor the lock.
    std::size_t left_over() const;

    TemporaryDirectory scratch;
    std::string uv;
    std::string directory;
    environments::EnvironmentStore store;
};

}  // namespace cellkeep::test
