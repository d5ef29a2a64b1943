// SPDX-License-Identifier: Apache-2.0
//
// The languages this server offers: for each, the program that is its kernel, what of the host it
// needs to see, and its environment.
#pragma once

#include "kernel-manager/image/prepare.hpp"
#include "kernel-manager/session/session.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/policy.hpp"

#include <map>
#include <memory>
#include <string>
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
};

/// Where the parts of this installation are on the host.
struct Installation {
    std::string binary_dir;          // holds cellkeep, cellkeep-sandbox, cellkeep-kernel-python
    std::string python_package_dir;  // holds the package cellkeep_kernel
    std::string python_environment;  // a virtual environment (sys.prefix)
};

/// The installation this program belongs to: beside /proc/self/exe in an installed tree, or the
/// build tree and its sources. kUnavailable names what is missing and the command that makes it.
Result<Installation> find_installation();

/// What of it goes into images.
image::Sources image_sources(const Installation& installation);

/// The argument that makes a kernel program a zygote (kernels/common/kernel_main.hpp).
inline constexpr const char* kZygoteArgument = "--zygote";

class KernelCatalog {
 public:
    KernelCatalog() = default;
    /// Without images sessions see the host's own files. kUnavailable names the missing file.
    static Result<KernelCatalog> create(
        const Installation& installation, const image::Prepared* images = nullptr);

    /// Null if the language is not offered.
    const KernelSpec* find(const std::string& language) const;
    std::vector<std::string> languages() const;
    void add(KernelSpec spec);  // for tests

 private:
    std::map<std::string, KernelSpec> specs_;
};

}  // namespace cellkeep::session
