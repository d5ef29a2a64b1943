// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/shared_variables.hpp"

#include "kernel-manager/languages/named_environments.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace cellkeep::session {

namespace {

constexpr std::array<std::string_view, 3> kFolderLists{"PATH=", "NODE_PATH=", "LD_LIBRARY_PATH="};

/// The whole entry "NAME=value"; null if there is none.
const std::string* find_entry(const KernelSpec& spec, std::string_view name) {
    const auto found =
        std::find_if(spec.env.begin(), spec.env.end(), [name](const std::string& entry) {
            return entry.starts_with(name);
        });
    return found == spec.env.end() ? nullptr : &*found;
}

bool names_folder(const std::string& list, std::string_view folder) {
    return (":" + list + ":").find(":" + std::string(folder) + ":") != std::string::npos;
}

void append_folders(std::string& list, std::string_view more) {
    while (!more.empty()) {
        const std::string_view folder = more.substr(0, more.find(':'));
        more.remove_prefix(std::min(folder.size() + 1, more.size()));
        if (!folder.empty() && !names_folder(list, folder)) {
            list += (list.empty() ? "" : ":") + std::string(folder);
        }
    }
}

}  // namespace

void share_variables(const KernelSpec& main, KernelSpec& spec) {
    if (!is_named(main)) {
        return;
    }
    for (const std::string_view name : kFolderLists) {
        if (const std::string* const shared = find_entry(main, name)) {
            std::erase_if(
                spec.env, [name](const std::string& entry) { return entry.starts_with(name); });
            spec.env.push_back(*shared);
        }
    }
}

std::map<std::string, std::string> join_variables(
    const KernelSpec& main, std::map<std::string, std::string> own) {
    if (!is_named(main)) {
        return own;
    }
    for (const std::string_view name : kFolderLists) {
        const auto mine = own.find(std::string(name.substr(0, name.size() - 1)));
        const std::string* const shared = find_entry(main, name);
        if (mine != own.end() && shared != nullptr) {
            append_folders(mine->second, std::string_view(*shared).substr(name.size()));
        }
    }
    return own;
}

}  // namespace cellkeep::session
