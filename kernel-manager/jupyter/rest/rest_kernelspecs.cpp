// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/rest_kernelspecs.hpp"

#include "kernel-manager/jupyter/rest/logos.hpp"
#include "kernel-manager/languages/named_environments.hpp"
#include "protocol/header.hpp"
#include "protocol/support/syscall.hpp"

#include <algorithm>
#include <filesystem>

namespace cellkeep::jupyter {

namespace {

constexpr std::size_t kLogoBytesMax = 1UL << 20U;

std::string lower(std::string_view text) {
    std::string copy(text);
    std::transform(copy.begin(), copy.end(), copy.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return copy;
}

}  // namespace

std::string kernel_name_of(const std::string& language) {
    return language == "python" ? kDefaultKernelName : language;
}

std::optional<std::string> language_of(
    std::string_view kernel_name, const std::vector<std::string>& languages) {
    const std::string wanted = lower(kernel_name);
    for (const std::string& language : languages) {
        if (wanted == language || wanted == kernel_name_of(language)) {
            return language;
        }
    }
    return std::nullopt;
}

Result<std::string> load_logo(const session::KernelSpec& spec, std::string_view file) {
    const Logo* own = find_logo(file);
    if (own == nullptr) {
        return Error(ErrorCode::kNotFound, "there is no such picture");
    }
    if (spec.folder.empty()) {
        return std::string(own->bytes);
    }
    return read_file(spec.folder + "/" + std::string(file), kLogoBytesMax);
}

nlohmann::json kernelspec_model(const session::KernelSpec& spec, const std::string& base_url) {
    const std::string name = kernel_name_of(session::offered_by(spec));
    nlohmann::json resources = nlohmann::json::object();
    for (const Logo& logo : logos()) {
        const std::string file(logo.file);
        std::error_code error;
        if (!spec.folder.empty() && !std::filesystem::exists(spec.folder + "/" + file, error)) {
            continue;
        }
        resources[file.substr(0, file.find('.'))] = base_url + "kernelspecs/" + name + "/" + file;
    }
    // argv is how the same kernel starts without a server; clients of this server do not run it.
    nlohmann::json argv = {"cellkeep", "kernel", "-f", "{connection_file}"};
    if (name != kDefaultKernelName) {
        argv.push_back("--language");
        argv.push_back(session::offered_by(spec));
    }
    return {
        {"name", name},
        {"spec",
         {{"argv", std::move(argv)},
          {"display_name", spec.display_name},
          {"language", spec.language},
          {"interrupt_mode", "message"},
          {"env", nlohmann::json::object()},
          {"kernel_protocol_version", protocol::kProtocolVersion},
          {"metadata", {{"debugger", spec.debugger}}}}},
        {"resources", std::move(resources)}};
}

}  // namespace cellkeep::jupyter
