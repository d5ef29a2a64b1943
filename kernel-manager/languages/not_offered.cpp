// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/not_offered.hpp"

#include <algorithm>
#include <array>

namespace cellkeep::session {

namespace {

constexpr const char* kNoFolder = "its folder is not in this installation";
constexpr const char* kReinstall = "Reinstall Cellkeep.";

struct OwnLanguage {
    const char* name;
    const char* reason;
    const char* hint;
};

/// Only C++ has a driver that is compiled, and it is left out where LLVM is missing
/// (kernels/cpp/CMakeLists.txt).
constexpr std::array kOwnLanguages{
    OwnLanguage{"bash", kNoFolder, kReinstall},
    OwnLanguage{
        "cpp",
        "this build has no C++ driver, because LLVM and clang 19 were missing when it was made",
        "Install the packages of scripts/lib/packages-cpp.txt (./scripts/test does), then build "
        "again: ./scripts/run"},
    OwnLanguage{"javascript", kNoFolder, kReinstall},
    OwnLanguage{"sql", kNoFolder, kReinstall},
    OwnLanguage{"typescript", kNoFolder, kReinstall}};

const NotOffered* find_reason(
    const std::string& language, const std::vector<NotOffered>& not_offered) {
    const auto found =
        std::find_if(not_offered.begin(), not_offered.end(), [&](const NotOffered& one) {
            return one.language == language;
        });
    return found == not_offered.end() ? nullptr : &*found;
}

}  // namespace

std::vector<NotOffered> find_absent_languages(
    const std::vector<std::string>& offered, const std::vector<NotOffered>& known) {
    std::vector<NotOffered> absent;
    for (const OwnLanguage& own : kOwnLanguages) {
        const bool is_offered =
            std::find(offered.begin(), offered.end(), own.name) != offered.end();
        if (!is_offered && find_reason(own.name, known) == nullptr) {
            absent.push_back({own.name, own.reason, own.hint});
        }
    }
    return absent;
}

std::string describe(const NotOffered& language) {
    if (language.hint.empty()) {
        return language.reason;
    }
    return language.reason + (language.reason.ends_with('.') ? " " : ". ") + language.hint;
}

Error refuse_language(const std::string& language, const std::vector<NotOffered>& not_offered) {
    const NotOffered* known = find_reason(language, not_offered);
    return Error::in_field(
        ErrorCode::kInvalidArgument,
        "language",
        language + " is not offered" + (known == nullptr ? "" : ": " + known->reason),
        known == nullptr ? "" : known->hint);
}

}  // namespace cellkeep::session
