// SPDX-License-Identifier: Apache-2.0
//
// A language made for one test: a folder with a kernel.json and a driver in Python.
#pragma once

#include "tests/support/kernel_client.hpp"
#include "tests/support/temporary_directory.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::test {

class DriverFolder {
 public:
    /// The driver is a subclass body of cellkeep_driver.Driver.
    static DriverFolder with_class(
        std::string_view body, const nlohmann::json& about = nlohmann::json::object());
    /// The driver is a whole program that has `say(event)`, `hear()` and the module `os`, and has
    /// said that it is ready unless silent.
    enum class Begins { kReady, kSilent };
    static DriverFolder with_program(std::string_view program, Begins begins = Begins::kReady);

    KernelStart start() const;

 private:
    DriverFolder(std::string_view program, const nlohmann::json& about);
    TemporaryDirectory directory_;
};

/// A language of the source tree.
KernelStart start_language(const std::string& language);

}  // namespace cellkeep::test
