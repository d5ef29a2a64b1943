// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/operator_tool.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>

namespace cellkeep::environments {

namespace {

constexpr std::array kOfTheNetwork{
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy"};

std::string own_variable(const char* name) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread changes the environment.
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

bool is_program_file(const std::string& path) {
    struct stat info {};
    return path.starts_with('/') && ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
           ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

Result<std::string> find_tool(const OperatorTool& tool) {
    const std::string chosen = own_variable(tool.variable);
    const std::string folders = own_variable("PATH");
    if (is_program_file(chosen)) {
        return chosen;
    }
    for (std::size_t begin = 0; chosen.empty() && begin <= folders.size();) {
        const std::size_t end = std::min(folders.find(':', begin), folders.size());
        std::string program = folders.substr(begin, end - begin) + "/" + tool.name;
        if (is_program_file(program)) {
            return program;
        }
        begin = end + 1;
    }
    const std::string name = tool.name;
    return Error(
        ErrorCode::kUnavailable,
        chosen.empty() ? "the program " + name + ", which installs packages, is not on PATH"
                       : std::string(tool.variable) + ": " + chosen + " is no program",
        tool.hint);
}

std::vector<std::string> variables_of_the_network() {
    std::vector<std::string> variables;
    for (const char* name : kOfTheNetwork) {
        if (const std::string value = own_variable(name); !value.empty()) {
            variables.push_back(std::string(name) + "=" + value);
        }
    }
    return variables;
}

}  // namespace cellkeep::environments
