// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/memory_limit.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/cgroup/control_file.hpp"
#include "sandbox/shared/layer_switch.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace cellkeep::sandbox {

namespace {

constexpr MemoryLimit::Uncounted kSwapUncounted{
    "what is swapped out is not limited", "turn swap off, or boot with swapaccount=1"};
constexpr MemoryLimit::Uncounted kSocketsUncounted{
    "the buffers of sockets are not limited", "use cgroup v2"};

/// More than the heading (proc_swaps(5)); what cannot be read may hold anything.
bool host_has_swap() {
    const auto text = read_file("/proc/swaps", kControlFileBytesMax);
    return text.has_error() || std::count(text.value().begin(), text.value().end(), '\n') > 1;
}

}  // namespace

Result<MemoryLimit> MemoryLimit::apply_v2(const std::string& directory, std::uint64_t bytes) {
    BOOST_OUTCOME_TRY(write_control_file(directory + "/memory.max", std::to_string(bytes)));
    MemoryLimit limit;
    limit.directory_ = directory;
    limit.v2_ = true;
    // No file: the kernel does not account for swap (before 6.1, swapaccount=0).
    const std::string swap = directory + "/memory.swap.max";
    if (has_control_file(swap)) {
        BOOST_OUTCOME_TRY(write_control_file(swap, "0"));
    } else if (host_has_swap()) {
        limit.uncounted_ = kSwapUncounted;
    }
    return limit;
}

Result<MemoryLimit> MemoryLimit::apply_v1(const std::string& directory, std::uint64_t bytes) {
    const std::string value = std::to_string(bytes);
    BOOST_OUTCOME_TRY(write_control_file(directory + "/memory.limit_in_bytes", value));
    MemoryLimit limit;
    limit.directory_ = directory;
    // memsw (memory and swap together) after the plain limit: it may not be below it.
    const std::string swap = directory + "/memory.memsw.limit_in_bytes";
    if (has_control_file(swap)) {
        BOOST_OUTCOME_TRY(write_control_file(swap, value));
    } else if (host_has_swap()) {
        limit.uncounted_ = kSwapUncounted;
    }
    // v2 charges the buffers of sockets with all the rest. v1 has a counter of their own, and it
    // counts nothing before it has a limit (cgroup-v1/memory.rst, section 2.7.3).
    const auto sockets = layer_removed("socket_memory")
                             ? Status(ok())
                             : write_control_file(
                                   directory + "/memory.kmem.tcp.limit_in_bytes",
                                   std::to_string(bytes / kSocketMemoryShare));
    if (sockets.has_error()) {
        limit.uncounted_ = kSocketsUncounted;
    }
    return limit;
}

MemoryLimit MemoryLimit::take_over(std::string directory, CgroupVersion version) {
    MemoryLimit limit;
    limit.directory_ = std::move(directory);
    limit.v2_ = version == CgroupVersion::kV2;
    return limit;
}

Status MemoryLimit::change(std::uint64_t bytes) {
    // cgroup v2 would kill to get there (cgroup-v2.rst, memory.max); v1 says EBUSY.
    const std::uint64_t used = this->bytes();
    if (used > bytes) {
        return Error(
            ErrorCode::kConflict, "the session uses " + std::to_string(used) + " bytes of memory");
    }
    const std::string value = std::to_string(bytes);
    if (v2_) {
        return write_control_file(directory_ + "/memory.max", value);
    }
    // The sum of memory and swap may not be below memory alone: on the way down it comes second, on
    // the way back up first.
    const std::string alone = directory_ + "/memory.limit_in_bytes";
    const std::string both = directory_ + "/memory.memsw.limit_in_bytes";
    const bool swaps = has_control_file(both);
    Status changed = write_control_file(alone, value);
    if (changed.has_error() && swaps && write_control_file(both, value).has_value()) {
        return write_control_file(alone, value);
    }
    BOOST_OUTCOME_TRY(std::move(changed));
    return swaps ? write_control_file(both, value) : Status(ok());
}

std::uint64_t MemoryLimit::bytes() const {
    return in_force()
               ? read_number(directory_ + (v2_ ? "/memory.current" : "/memory.usage_in_bytes"))
               : 0;
}

std::uint64_t MemoryLimit::refusals() const {
    if (!in_force()) {
        return 0;
    }
    // With both limits of v1 the same, memory and swap together are charged first.
    return v2_ ? read_keyed(directory_ + "/memory.events", "max")
               : read_number(directory_ + "/memory.failcnt") +
                     read_number(directory_ + "/memory.memsw.failcnt");
}

std::uint64_t MemoryLimit::peak() const {
    if (!in_force()) {
        return 0;
    }
    UniqueFd whole;
    if (!peak_) {
        const char* name = v2_ ? "/memory.peak" : "/memory.max_usage_in_bytes";
        whole.reset(::open((directory_ + name).c_str(), O_RDONLY | O_CLOEXEC));
    }
    std::array<char, 32> text{};
    const ssize_t got = ::pread(peak_ ? peak_.get() : whole.get(), text.data(), text.size(), 0);
    std::uint64_t bytes = 0;
    if (got > 0) {
        // What is no number leaves 0: not known.
        (void)std::from_chars(text.data(), text.data() + got, bytes);
    }
    return bytes;
}

bool MemoryLimit::restart_peak() {
    if (!in_force()) {
        return false;
    }
    if (!peak_) {
        // Since Linux 6.12 a written descriptor of v2 has a peak of its own (cgroup-v2.rst,
        // memory.peak); before, the file cannot be written.
        const char* name = v2_ ? "/memory.peak" : "/memory.max_usage_in_bytes";
        peak_.reset(::open((directory_ + name).c_str(), O_RDWR | O_CLOEXEC));
    }
    // v2 takes anything, v1 the number 0 alone.
    const std::string_view value = v2_ ? "reset" : "0";
    return peak_ && ::pwrite(peak_.get(), value.data(), value.size(), 0) > 0;
}

std::uint64_t MemoryLimit::oom_kills() const {
    if (!in_force()) {
        return 0;
    }
    return oom_kills_file_.keyed(
        directory_ + (v2_ ? "/memory.events" : "/memory.oom_control"), "oom_kill");
}

}  // namespace cellkeep::sandbox
