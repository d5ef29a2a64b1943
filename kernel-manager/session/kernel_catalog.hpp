// SPDX-License-Identifier: Apache-2.0
//
// The languages this server offers: for each, the program that is its kernel, what of the host it
// needs to see, and its environment.
#pragma once

#include "kernel-manager/image/prepare.hpp"
#include "kernel-manager/session/language_folder.hpp"
#include "kernel-manager/session/session.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/policy.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {

/// How to start one language's kernel inside a sandbox. Paths in argv and env are inside paths.
struct KernelSpec {
    std::string language;      // "python"
    std::string display_name;  // "Python 3 (Cellkeep)"
    std::vector<std::string> argv;
    std::vector<std::string> env;  // "NAME=value"
    std::vector<sandbox::ReadOnlyPath> read_only;
    std::vector<sandbox::PrivateImage> images;            // where read_only comes from
    std::vector<std::shared_ptr<const UniqueFd>> leases;  // keep the images from being removed
    EnvironmentInfo environment;
    /// argv with kZygoteArgument is a zygote whose warm workers are the kernel
    /// (sandbox/zygote.hpp).
    bool forkable = false;
    bool debugger = false;  // its environment has what the kernel debugs with
    /// On the host: where its kernel.json and its logos are. Empty: Python.
    std::string folder = {};
    nlohmann::json language_info = nlohmann::json::object();  // before any kernel has been asked
};

/// Where the parts of this installation are on the host.
struct Installation {
    std::string binary_dir;          // holds cellkeep, cellkeep-sandbox, cellkeep-kernel-*
    std::string python_package_dir;  // holds the package cellkeep_kernel
    std::string python_environment;  // a virtual environment (sys.prefix)
    std::string driver_module = {};  // cellkeep_driver.py
    std::string environments = {};   // the packages of languages, each a folder
    /// Of languages that are folders; the operator's own come last.
    std::vector<std::string> kernel_directories = {};
    std::string program_path = {};  // where programs of theirs are looked for, as in $PATH
};

/// The installation this program belongs to: beside /proc/self/exe in an installed tree, or the
/// build tree and its sources. kUnavailable names what is missing and the command that makes it.
Result<Installation> find_installation();

/// What of it goes into images.
image::Sources image_sources(const Installation& installation);

/// The argument that makes a kernel program a zygote (kernels/common/kernel_main.hpp).
inline constexpr const char* kZygoteArgument = "--zygote";
inline constexpr const char* kBareZygoteArgument = "--bare-zygote";

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
