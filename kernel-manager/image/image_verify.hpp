// SPDX-License-Identifier: Apache-2.0
//
// Whether a stored image is what its record says. Two depths: the identity of its inodes (number,
// size and both times; the change time is the kernel's alone, so who writes to a file, even as its
// owner, changes it) and the contents themselves.
#pragma once

#include "kernel-manager/image/image_record.hpp"
#include "kernel-manager/image/manifest.hpp"
#include "protocol/support/result.hpp"

#include <string>

namespace cellkeep::image {

/// Names inside an image's own directory.
inline constexpr const char* kRecordName = "record.json";
inline constexpr const char* kManifestName = "manifest";
inline constexpr const char* kFileName = "image.erofs";
inline constexpr const char* kTreeName = "tree";
inline constexpr const char* kMountName = "root";
inline constexpr const char* kUseName = "use";

/// The record and the manifest that its digest is of. kProtocol if they do not fit.
Result<ImageRecord> load_record(const std::string& directory);
Result<Manifest> load_manifest(const std::string& directory, const ImageRecord& record);

/// kProtocol if an entry is missing, of another kind, owned by another user or writable by one.
Result<std::string> identity_of(
    const std::string& directory, Format format, const Manifest& manifest);

/// Reads everything. kProtocol, naming what differs.
Status verify_contents(
    const std::string& directory, const ImageRecord& record, const Manifest& manifest);

/// The identity if it is as recorded; else the contents, and then the record gets the new identity.
/// Of one file (kErofs) the manifest is read only then: its inode is part of the identity.
Status verify(const std::string& directory, ImageRecord& record);

}  // namespace cellkeep::image
