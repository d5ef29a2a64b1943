// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/kernel/driver_folder.hpp"

#include "protocol/json.hpp"

#include <fstream>

namespace cellkeep::test {

namespace {

constexpr const char* kPython = CELLKEEP_TEST_ENVIRONMENT "/bin/python";
constexpr const char* kModule = CELLKEEP_TEST_KERNELS "/driver";

KernelStart start_folder(const std::string& folder) {
    return {
        .program = {
            CELLKEEP_TEST_DRIVER_KERNEL,
            folder,
            std::string("python=") + kPython,
            std::string("driver=") + kModule}};
}

/// A line to descriptor 4, a line from descriptor 3.
constexpr std::string_view kRaw = R"(import json, os, signal, subprocess, sys, time
requests = os.fdopen(3, "rb", buffering=0)
def say(event):
    os.write(4, json.dumps(event).encode() + b"\n")
def hear():
    line = requests.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)
)";

}  // namespace

DriverFolder::DriverFolder(std::string_view program, const nlohmann::json& about) {
    nlohmann::json kernel{
        {"language", "toy"},
        {"display_name", "Toy"},
        {"argv", {"{python}", "-I", "-S", "{folder}/driver.py"}}};
    kernel.update(about);
    std::ofstream(directory_.path() + "/kernel.json") << kernel.dump();
    std::ofstream(directory_.path() + "/driver.py") << program;
}

DriverFolder DriverFolder::with_class(std::string_view body, const nlohmann::json& about) {
    std::string program = "import sys\nsys.path.insert(0, \"" + std::string(kModule) +
                          "\")\nimport cellkeep_driver, os, time\n"
                          "class Toy(cellkeep_driver.Driver):\n    version = \"1.5\"\n";
    program += std::string(body) + "\ncellkeep_driver.serve(Toy())\n";
    return {program, about};
}

DriverFolder DriverFolder::with_program(std::string_view program, Begins begins) {
    std::string whole(kRaw);
    if (begins == Begins::kReady) {
        whole += "say({\"event\": \"ready\", \"version\": \"1\"})\n";
    }
    whole += program;
    return {whole, nlohmann::json::object()};
}

KernelStart DriverFolder::start() const {
    return start_folder(directory_.path());
}

KernelStart start_language(const std::string& language) {
    return start_folder(std::string(CELLKEEP_TEST_KERNELS) + "/" + language);
}

}  // namespace cellkeep::test
