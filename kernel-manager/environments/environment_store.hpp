// SPDX-License-Identifier: Apache-2.0
//
// The named environments of one user on one host, in a private directory (0700): their files as
// images that are named by what is in them (image/image_store.hpp), and a record for each name. Two
// names whose files are the same have one image. Several processes may use the store. Blocks: not
// for the event loop.
#pragma once

#include "kernel-manager/environments/named_record.hpp"
#include "kernel-manager/environments/python_program.hpp"
#include "kernel-manager/environments/source_package.hpp"
#include "kernel-manager/image/image_store.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::environments {

/// Each is a bind mount and a kernelspec, and a bound that an operator can see.
inline constexpr std::size_t kEnvironmentsMax = 32;
/// Of one environment's files. While it is made, wheels and unpacked packages lie beside it.
inline constexpr std::uint64_t kEnvironmentBytesMax = 8ULL << 30U;
inline constexpr std::uint64_t kBuildBytesFactor = 3;
/// From the first request to the last file.
inline constexpr std::chrono::minutes kEnvironmentTimeMax{20};

/// Below an image's root.
inline constexpr const char* kImageFolder = "/environment";
/// Likewise, of an environment that brings its Python (kInterpreterInside).
inline constexpr const char* kInterpreterFolder = "/interpreter";

struct EnvironmentBounds {
    std::size_t count = kEnvironmentsMax;
    std::uint64_t bytes = kEnvironmentBytesMax;
    std::chrono::milliseconds time = kEnvironmentTimeMax;
};

struct EnvironmentOrder {
    std::string name;
    std::string requirements;             // a file's text
    std::string index;                    // an address; "": PyPI
    std::string uv;                       // the program
    std::string default_packages;         // the folder of the default environment's packages
    std::string kernel_package = {};      // the folder that has the kernel's own Python package
    std::string python = kPythonVersion;  // of find_python()
    std::string folders = {};             // where programs are looked for, as in $PATH
    /// Packages that are built from their source, by name. All others are wheels of the index.
    std::vector<std::string> sources = {};
    SourceBuilder build_source = {};  // set if there are such
};

struct NamedEnvironment {
    NamedRecord record;
    /// Nothing: its files are not there any more, because they were found damaged.
    std::optional<image::ImageRecord> image;
    bool in_use = false;  // a server has it
};

class EnvironmentStore {
 public:
    /// Makes the directory if it is missing. kPermissionDenied if it belongs to or is open to
    /// others.
    static Result<EnvironmentStore> open(
        const std::string& directory, const EnvironmentBounds& bounds = {});

    /// By name. A record that is none is left out.
    Result<std::vector<NamedEnvironment>> list() const;
    /// kNotFound if there is none; kInvalidArgument for what is no name.
    Result<NamedEnvironment> find(const std::string& name) const;
    /// Verifies its files first. kProtocol if they were changed: then they are removed unless a
    /// server has them. kNotFound if they are not there any more.
    Result<image::ImageInUse> use(const NamedEnvironment& environment);

    /// Makes one. kConflict if the name is taken; kInvalidArgument for a name, an index, a Python
    /// or requirements that are not taken; kLimitExceeded and kTimeout at the bounds; kUnavailable
    /// with what uv says, or what a build says of its source; kProtocol if that gave another
    /// package. Waits while another process makes or removes one. A failure leaves nothing behind.
    Result<NamedRecord> create(const EnvironmentOrder& order, const image::Progress& progress);

    /// kConflict while a server has it.
    Status remove(const std::string& name);

    const std::string& directory() const { return directory_; }
    /// The directory of the records. create() renames a whole one into it.
    std::string names() const;

 private:
    EnvironmentStore(std::string directory, image::Store images, const EnvironmentBounds& bounds)
        : directory_(std::move(directory)), images_(std::move(images)), bounds_(bounds) {}
    Result<UniqueFd> lock() const;
    Result<std::vector<NamedRecord>> records() const;
    Status check_new(const std::string& name) const;
    Result<NamedRecord> build(
        const EnvironmentOrder& order,
        const std::vector<std::string>& requirements,
        const std::string& scratch,
        const image::Progress& progress);
    std::string path_of(const std::string& name) const;

    std::string directory_;
    image::Store images_;
    EnvironmentBounds bounds_;
};

/// $CELLKEEP_ENV_DIR, else $XDG_DATA_HOME/cellkeep/environments, else
/// $HOME/.local/share/cellkeep/environments. kInvalidArgument without any of them.
Result<std::string> default_environments_directory();

}  // namespace cellkeep::environments
