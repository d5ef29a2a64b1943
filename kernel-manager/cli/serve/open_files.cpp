// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/open_files.hpp"

#include <sys/resource.h>

#include <cerrno>

namespace cellkeep::cli {

Result<std::uint64_t> raise_open_files(std::uint64_t needed) {
    struct rlimit limit {};
    if (::getrlimit(RLIMIT_NOFILE, &limit) < 0) {
        return Error::from_errno(errno, "getrlimit");
    }
    if (limit.rlim_max < needed) {
        const struct rlimit higher { needed, needed };
        if (::setrlimit(RLIMIT_NOFILE, &higher) == 0) {
            return needed;
        }
        // Without the privilege it is the operator's to raise.
    }
    // Thousands of sessions and connections need descriptors; the soft limit is often 1024.
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &limit) < 0) {
        return Error::from_errno(errno, "setrlimit");
    }
    return std::uint64_t{limit.rlim_cur};  // RLIM_INFINITY is more than any need
}

std::optional<std::string> open_files_shortage(std::uint64_t limit, std::size_t sessions_max) {
    const std::uint64_t need = open_files_needed(sessions_max);
    if (limit >= need) {
        return std::nullopt;
    }
    const std::uint64_t enough =
        limit <= kServerOpenFiles ? 0 : (limit - kServerOpenFiles) / kSessionOpenFiles;
    return "the hard limit of open files is " + std::to_string(limit) + ", which is enough for " +
           std::to_string(enough) + " sessions; --max-sessions " + std::to_string(sessions_max) +
           " wants " + std::to_string(need) + " (ulimit -Hn, LimitNOFILE=)";
}

}  // namespace cellkeep::cli
