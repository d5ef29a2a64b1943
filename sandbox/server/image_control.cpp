// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/image_control.hpp"

#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

namespace cellkeep::sandbox {

namespace {

constexpr const char* kName = "private_image";

struct OpenImage {
    const PrivateImage* image = nullptr;
    UniqueFd root;
    dev_t device = 0;
};

enum class Where { kInside, kMissing, kOutside };

bool open_root(const PrivateImage& image, OpenImage& opened) {
    opened.image = &image;
    opened.root =
        UniqueFd(::open(image.root.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (!opened.root || ::fstat(opened.root.get(), &info) < 0) {
        return false;
    }
    opened.device = info.st_dev;
    return true;
}

/// The launcher follows links in the source once (open_tree(2)); here none may lead out of the
/// image, nor across a mount.
Where locate(const OpenImage& image, const std::string& source) {
    const std::string prefix = image.image->root + "/";
    if (!source.starts_with(prefix)) {
        return Where::kOutside;
    }
    open_how how{};
    how.flags = O_PATH | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
    const UniqueFd found(static_cast<int>(::syscall(
        SYS_openat2, image.root.get(), source.c_str() + prefix.size(), &how, sizeof(how))));
    if (!found) {
        return errno == ENOENT || errno == ENOTDIR ? Where::kMissing : Where::kOutside;
    }
    struct stat info {};
    return ::fstat(found.get(), &info) == 0 && info.st_dev == image.device ? Where::kInside
                                                                           : Where::kOutside;
}

Where locate(const std::vector<OpenImage>& images, const std::string& source) {
    for (const OpenImage& image : images) {
        if (const Where where = locate(image, source); where != Where::kOutside) {
            return where;
        }
    }
    return Where::kOutside;
}

/// Which of the path's files are in no image; empty: none.
std::string outside_of(const std::vector<OpenImage>& images, const ReadOnlyPath& path) {
    if (!path.shared && locate(images, path.source) == Where::kOutside) {
        return path.source;
    }
    const bool known = path.over.empty() || locate(images, path.over) != Where::kOutside;
    return known ? std::string() : path.over;
}

std::string mechanism_of(const Policy& policy) {
    std::string text;
    for (const PrivateImage& image : policy.images) {
        text += (text.empty() ? "" : "; ") + image.format + " " + image.digest;
    }
    return text;
}

}  // namespace

Control describe_private_image(const Policy& policy) {
    Control control{kName, ControlState::kAbsent, "", "", ""};
    control.fix = "let the server make its image: cellkeep image build";
    if (policy.images.empty()) {
        control.detail = "the read-only paths are the host's own files";
        return control;
    }
    std::vector<OpenImage> opened(policy.images.size());
    for (std::size_t i = 0; i < policy.images.size(); ++i) {
        if (!open_root(policy.images[i], opened[i])) {
            control.detail = "the image " + policy.images[i].digest + " cannot be opened";
            return control;
        }
    }
    control.mechanism = mechanism_of(policy);
    for (const ReadOnlyPath& path : policy.read_only) {
        const std::string foreign = outside_of(opened, path);
        if (!foreign.empty()) {
            control.state = ControlState::kDegraded;
            control.detail = path.target + " is the host's own (" + foreign + ")";
            control.fix = "list nothing that is not in the image, or accept it";
            return control;
        }
    }
    control.state = ControlState::kApplied;
    control.fix.clear();
    return control;
}

}  // namespace cellkeep::sandbox
