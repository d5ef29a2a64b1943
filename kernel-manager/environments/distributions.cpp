// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/distributions.hpp"

#include "protocol/support/syscall.hpp"
#include "protocol/support/text.hpp"

#include <filesystem>
#include <system_error>

namespace cellkeep::environments {

namespace fs = std::filesystem;

namespace {

/// Descriptions are part of it.
constexpr std::size_t kMetadataFileBytesMax = 4UL << 20U;
constexpr const char* kMetadataFolder = ".dist-info";

/// "comm >=0.1.3; extra == 'x'" without what comes after the name; "" if only an extra needs it.
std::string needed_name(std::string_view value) {
    if (const std::size_t marker = value.find(';');
        marker != std::string_view::npos &&
        value.substr(marker).find("extra") != std::string_view::npos) {
        return {};
    }
    value = trim(value);
    return normalised(value.substr(0, value.find_first_of(" ;<>=!~[(")));
}

/// The header fields; the description after the first empty line is not wanted.
void read_metadata(std::string_view text, std::string& name, Distribution& distribution) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = trim(text.substr(0, end), " \t\r");
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.empty()) {
            return;
        }
        const std::size_t colon = std::min(line.find(':'), line.size());
        const std::string_view field = line.substr(0, colon);
        const std::string_view value = trim(line.substr(std::min(colon + 1, line.size())));
        if (field == "Name") {
            name = normalised(value);
        } else if (field == "Version") {
            distribution.version = value;
        } else if (field == "Requires-Dist") {
            if (std::string needed = needed_name(value); !needed.empty()) {
                distribution.needs.push_back(std::move(needed));
            }
        }
    }
}

}  // namespace

std::string normalised(std::string_view name) {
    std::string result;
    for (const char c : name) {
        if (c == '-' || c == '_' || c == '.') {
            if (!result.ends_with('-')) {
                result += '-';
            }
        } else {
            result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        }
    }
    return result;
}

Result<Distributions> find_distributions(const std::string& packages) {
    Distributions found;
    std::error_code error;
    for (fs::directory_iterator at(packages, error), end; !error && at != end;
         at.increment(error)) {
        if (!at->path().filename().string().ends_with(kMetadataFolder)) {
            continue;
        }
        const auto text = read_file((at->path() / "METADATA").string(), kMetadataFileBytesMax);
        std::string name;
        Distribution distribution;
        if (text.has_value()) {
            read_metadata(text.value(), name, distribution);
        }
        if (!name.empty() && !distribution.version.empty()) {
            found.emplace(std::move(name), std::move(distribution));
        }
        if (found.size() > kDistributionsMax) {
            return Error(
                ErrorCode::kLimitExceeded,
                packages + " holds more than " + std::to_string(kDistributionsMax) + " packages");
        }
    }
    return found;
}

Distributions closure(const Distributions& all, const std::vector<std::string>& names) {
    Distributions found;
    std::vector<std::string> waiting = names;
    while (!waiting.empty()) {
        const std::string name = std::move(waiting.back());
        waiting.pop_back();
        const auto one = all.find(name);
        if (one != all.end() && found.emplace(*one).second) {
            waiting.insert(waiting.end(), one->second.needs.begin(), one->second.needs.end());
        }
    }
    return found;
}

const std::vector<std::string>& kernel_packages() {
    // The first group of kernels/python/environment/requirements.in.
    static const std::vector<std::string> packages{
        "ipython", "matplotlib-inline", "comm", "ipywidgets", "debugpy"};
    return packages;
}

Result<Distributions> kernel_distributions(const std::string& packages) {
    BOOST_OUTCOME_TRY(const Distributions all, find_distributions(packages));
    return closure(all, kernel_packages());
}

}  // namespace cellkeep::environments
