// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/system_paths.hpp"

namespace cellkeep::session {

std::vector<sandbox::ReadOnlyPath> system_paths() {
    std::vector<sandbox::ReadOnlyPath> paths = {
        {"/usr/bin", "/usr/bin"},
        {"/usr/lib", "/usr/lib"},
    };
    const auto add_optional = [&paths](const char* path, bool executable) {
        paths.push_back(
            {.source = path, .target = path, .executable = executable, .optional = true});
    };
    add_optional("/usr/lib64", true);
    for (const char* data :
         {"/usr/share/zoneinfo",
          "/usr/share/fonts",
          "/usr/share/fontconfig",
          "/usr/share/ca-certificates",
          "/usr/share/mime",
          "/usr/share/locale",
          "/etc/ssl/certs",
          "/etc/fonts",
          "/etc/alternatives",
          "/etc/ld.so.cache",
          "/etc/localtime"}) {
        add_optional(data, false);
    }
    return paths;
}

}  // namespace cellkeep::session
