// SPDX-License-Identifier: Apache-2.0
//
// How to start the kernel of one language, and the environment that it comes from. Values.
#pragma once

#include "protocol/support/unique_fd.hpp"
#include "sandbox/policy/policy.hpp"

#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <vector>

namespace cellkeep::session {

struct EnvironmentInfo {
    std::string name;
    std::string digest;  // "sha256:…" of what the environment was locked to
};

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
    /// (sandbox/server/zygote.hpp).
    bool forkable = false;
    bool debugger = false;  // its environment has what the kernel debugs with
    /// Of the private image (image::RecipeKey::packages); "": not known.
    std::string image_packages = {};
    std::string remark = {};  // for the operator, who may want to make the environment again
    /// On the host: where its kernel.json and its logos are. Empty: Python.
    std::string folder = {};
    nlohmann::json language_info = nlohmann::json::object();  // before any kernel has been asked
};

/// The argument that makes a kernel program a zygote (kernels/common/kernel_main.hpp).
inline constexpr const char* kZygoteArgument = "--zygote";
inline constexpr const char* kBareZygoteArgument = "--bare-zygote";

}  // namespace cellkeep::session
