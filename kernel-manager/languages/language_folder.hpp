// SPDX-License-Identifier: Apache-2.0
//
// Languages that are folders (kernels/driver/README.md). Finds and reads them, and checks what they
// need of the host. A language with something missing is reported; the others are offered.
#pragma once

#include "kernel-manager/languages/not_offered.hpp"
#include "protocol/kernel_json.hpp"
#include "protocol/support/result.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::session {

struct LanguageFolder {
    std::string path;
    protocol::KernelJson about;
    std::map<std::string, std::string> programs;  // name -> the file itself, links followed
    std::string packages;                         // a directory; "" if it wants none
    std::map<std::string, std::string> shared;    // language -> the folder beside it
};

struct LanguageFolders {
    std::vector<LanguageFolder> found;
    std::vector<NotOffered> not_offered;
};

/// Folders in one of these directories are languages if they have a kernel.json. The first of a
/// name counts. environments: where `packages` are; path: where programs are looked for, as in
/// $PATH.
LanguageFolders find_language_folders(
    const std::vector<std::string>& directories,
    const std::string& environments,
    std::string_view path);

/// The first executable file of that name on path, links followed; "" if there is none. A name
/// with a slash is a path itself.
std::string find_program(const std::string& name, std::string_view path);

}  // namespace cellkeep::session
