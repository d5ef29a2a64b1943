// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/cgroup_layout.hpp"

#include "protocol/support/syscall.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace cellkeep::sandbox {

namespace {

constexpr std::size_t kProcFileBytesMax = 8UL << 20U;

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(at + 1);
    }
}

struct Mount {
    std::string root;
    std::string point;
    bool v2 = false;
    std::vector<std::string> options;  // v1: the controllers are among them
};

/// Nothing for a mount of another kind. proc_pid_mountinfo(5): id parent dev root point options
/// [optional fields] - type source super-options.
Result<std::optional<Mount>> parse_mount(std::string_view line) {
    const std::vector<std::string_view> fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 4) {
        return Error(ErrorCode::kInvalidArgument, "mountinfo: a line of an unknown form");
    }
    const std::string_view type = dash[1];
    if (type != "cgroup" && type != "cgroup2") {
        return std::optional<Mount>();
    }
    Mount mount{
        unescape_mount_path(fields[3]), unescape_mount_path(fields[4]), type == "cgroup2", {}};
    for (const std::string_view option : split(dash[3], ',')) {
        mount.options.emplace_back(option);
    }
    return std::optional<Mount>(std::move(mount));
}

/// The directory of cgroup path under the mount, or "" if the mount does not show it (its root is
/// elsewhere: a container with a part of the tree).
std::string directory_of(const Mount& mount, std::string_view path) {
    if (mount.root != "/") {
        const bool beneath = path == mount.root || path.starts_with(mount.root + "/");
        if (!beneath) {
            return {};
        }
        path.remove_prefix(mount.root.size());
    }
    while (path.ends_with('/')) {
        path.remove_suffix(1);
    }
    // "/.." as the path means: outside the cgroup namespace.
    if (path.find("/..") != std::string_view::npos) {
        return {};
    }
    return mount.point + std::string(path);
}

}  // namespace

std::string_view CgroupLayout::name() const {
    if (v1.empty()) {
        return unified.empty() ? "none" : "v2";
    }
    return unified.empty() ? "v1" : "hybrid";
}

std::string unescape_mount_path(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto digit = [&](std::size_t at) {
            return at < text.size() && text[at] >= '0' && text[at] <= '7';
        };
        if (text[i] == '\\' && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
            const int value =
                (text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0');
            out += static_cast<char>(value);
            i += 3;
        } else {
            out += text[i];
        }
    }
    return out;
}

Result<CgroupLayout> parse_cgroup_layout(std::string_view membership, std::string_view mountinfo) {
    std::vector<Mount> mounts;
    for (const std::string_view line : split(mountinfo, '\n')) {
        if (line.empty()) {
            continue;
        }
        BOOST_OUTCOME_TRY(auto mount, parse_mount(line));
        if (mount) {
            mounts.push_back(*std::move(mount));
        }
    }
    CgroupLayout layout;
    for (const Mount& mount : mounts) {
        layout.mounts.insert(mount.point);
    }
    for (const std::string_view line : split(membership, '\n')) {
        if (line.empty()) {
            continue;
        }
        // "5:cpu,cpuacct:/path"; v2 is "0::/path" (cgroups(7)).
        const std::size_t first = line.find(':');
        const std::size_t second =
            first == std::string_view::npos ? first : line.find(':', first + 1);
        if (second == std::string_view::npos || line.substr(second + 1, 1) != "/") {
            return Error(
                ErrorCode::kInvalidArgument, "/proc/self/cgroup: a line of an unknown form");
        }
        const std::string_view controllers = line.substr(first + 1, second - first - 1);
        const std::string_view path = line.substr(second + 1);
        for (const Mount& mount : mounts) {
            if (controllers.empty()) {
                if (mount.v2 && layout.unified.empty()) {
                    layout.unified = directory_of(mount, path);
                    layout.unified_mount = mount.point;
                }
                continue;
            }
            for (const std::string_view controller : split(controllers, ',')) {
                const bool here =
                    !mount.v2 &&
                    std::find(mount.options.begin(), mount.options.end(), controller) !=
                        mount.options.end();
                std::string directory = here ? directory_of(mount, path) : std::string();
                if (!directory.empty()) {
                    layout.v1.try_emplace(std::string(controller), std::move(directory));
                }
            }
        }
    }
    return layout;
}

Result<CgroupLayout> read_cgroup_layout() {
    BOOST_OUTCOME_TRY(const auto membership, read_file("/proc/self/cgroup", kProcFileBytesMax));
    BOOST_OUTCOME_TRY(const auto mountinfo, read_file("/proc/self/mountinfo", kProcFileBytesMax));
    return parse_cgroup_layout(membership, mountinfo);
}

}  // namespace cellkeep::sandbox
