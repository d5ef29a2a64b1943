// SPDX-License-Identifier: Apache-2.0
//
// The named environments of one user on one host, in a private directory (0700): their files as
// images that are named by what is in them (image/image_store.hpp), and a record for each name. Two
// names whose files are the same have one image. Several processes may use the store. Blocks: not
// for the event loop.
#pragma once

#include "kernel-manager/environments/environment_order.hpp"
#include "kernel-manager/environments/named_record.hpp"
#include "kernel-manager/image/image_store.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <optional>
#include <string>
#include <vector>

namespace cellkeep::environments {

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

    /// Makes one of a name that there is, and puts it in the former one's place. kNotFound if there
    /// is none; kConflict while a server has it; else as create(). After a failure the former one
    /// is there.
    Result<NamedRecord> replace(const EnvironmentOrder& order, const image::Progress& progress);

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
    Result<NamedRecord> make(
        const EnvironmentOrder& order,
        const std::vector<std::string>& requirements,
        const image::Progress& progress);
    Status remove_unnamed_images();
    std::string path_of(const std::string& name) const;

    std::string directory_;
    image::Store images_;
    EnvironmentBounds bounds_;
};

/// $CELLKEEP_ENV_DIR, else $XDG_DATA_HOME/cellkeep/environments, else
/// $HOME/.local/share/cellkeep/environments. kInvalidArgument without any of them.
Result<std::string> default_environments_directory();

}  // namespace cellkeep::environments
