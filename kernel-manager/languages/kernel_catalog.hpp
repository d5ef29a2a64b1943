// SPDX-License-Identifier: Apache-2.0
//
// The languages this server offers: for each, the program that is its kernel, what of the host it
// needs to see, and its environment.
#pragma once

#include "kernel-manager/image/prepare.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/languages/installation.hpp"
#include "kernel-manager/languages/language_folder.hpp"
#include "protocol/support/result.hpp"

#include <map>
#include <string>
#include <vector>

namespace cellkeep::session {

class KernelCatalog {
 public:
    KernelCatalog() = default;
    /// Without images sessions see the host's own files. kUnavailable names the missing file.
    static Result<KernelCatalog> create(
        const Installation& installation, const image::Prepared* images = nullptr);

    /// Languages that are there but lack something. Their names and why.
    const std::vector<NotOffered>& not_offered() const { return not_offered_; }
    void withhold(NotOffered language) { not_offered_.push_back(std::move(language)); }
    /// Null if the language is not offered.
    const KernelSpec* find(const std::string& language) const;
    std::vector<std::string> languages() const;
    void add(KernelSpec spec);  // for tests

 private:
    std::map<std::string, KernelSpec> specs_;
    std::vector<NotOffered> not_offered_;
};

}  // namespace cellkeep::session
