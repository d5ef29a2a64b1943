// SPDX-License-Identifier: Apache-2.0
//
// The languages this server offers: for each, the program that is its kernel, what of the host it
// needs to see, and its environment.
#pragma once

#include "kernel-manager/image/prepare.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/languages/installation.hpp"
#include "kernel-manager/languages/language_folder.hpp"
#include "kernel-manager/languages/not_offered.hpp"
#include "protocol/support/result.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {

/// How many read-only paths all languages of a catalogue may have together, each counted once: a
/// session shows those of every language that may run in it, and its policy has a bound
/// (sandbox::kReadOnlyPathsMax). The rest is for what a session is given besides.
inline constexpr std::size_t kCatalogPathsMax = 240;

class KernelCatalog {
 public:
    KernelCatalog() = default;
    /// Without images sessions see the host's own files. kUnavailable names the missing file.
    static Result<KernelCatalog> create(
        const Installation& installation, const image::Prepared* images = nullptr);

    /// Languages that this server could have and does not: why, and what gives them.
    const std::vector<NotOffered>& not_offered() const { return not_offered_; }
    void withhold(NotOffered language) { not_offered_.push_back(std::move(language)); }
    /// What kept it out is over.
    void forget_withheld(const std::string& language);
    /// refuse_language() with the reason that is known here.
    Error refuse(const std::string& language) const {
        return refuse_language(language, not_offered_);
    }
    /// Null if the language is not offered.
    const KernelSpec* find(const std::string& language) const;
    std::vector<std::string> languages() const;
    /// Offers the language. It is withheld instead if its paths and those of the languages that are
    /// offered already are more than kCatalogPathsMax together.
    void offer(KernelSpec spec);
    /// The same of a language that takes the place of one that is there, or of tests: no bound.
    void add(KernelSpec spec);

 private:
    std::map<std::string, KernelSpec> specs_;
    std::vector<NotOffered> not_offered_;
    std::set<std::pair<std::string, std::string>> paths_;  // source and target, of all specs
};

}  // namespace cellkeep::session
