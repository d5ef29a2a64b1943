// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/halted_leaf.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/cgroup/cgroup_kill.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace cellkeep::sandbox {

namespace {

Status write_freeze(const UniqueFd& file, char digit) {
    if (::pwrite(file.get(), &digit, 1, 0) != 1) {
        return Error::from_errno(errno, "write(cgroup.freeze)");
    }
    return ok();
}

}  // namespace

// The files stay open, because the leaf may be another group's meanwhile.
Result<HaltedLeaf> HaltedLeaf::begin(const std::string& path) {
    BOOST_OUTCOME_TRY(auto freeze, open_file(path + "/cgroup.freeze", O_WRONLY));
    BOOST_OUTCOME_TRY(auto kill, open_file(path + "/cgroup.kill", O_WRONLY));
    BOOST_OUTCOME_TRY(auto procs, open_file(path + "/cgroup.procs", O_RDONLY));
    BOOST_OUTCOME_TRY(auto events, open_file(path + "/cgroup.events", O_RDONLY));
    BOOST_OUTCOME_TRY(write_freeze(freeze, '1'));
    return HaltedLeaf({std::move(freeze), std::move(kill), std::move(procs), std::move(events)});
}

HaltedLeaf::~HaltedLeaf() {
    // Ignored, here and below: it fails if the cgroup is gone.
    if (files_.freeze && sealed_) {
        (void)kill().has_value();
    } else if (files_.freeze) {
        (void)write_freeze(files_.freeze, '0').has_value();
    }
}

Status HaltedLeaf::kill() {
    BOOST_OUTCOME_TRY(kill_processes(files_.kill, files_.procs));
    // A process that has its SIGKILL does nothing but end when it goes on. And the leaf must not
    // hold who comes into it later.
    return write_freeze(std::exchange(files_.freeze, UniqueFd()), '0');
}

bool HaltedLeaf::says(std::string_view what) const {
    std::array<char, 256> text{};
    // At offset 0 the kernel makes the text anew, and tells of the next change from here on.
    const ssize_t got = ::pread(files_.events.get(), text.data(), text.size(), 0);
    return got > 0 && std::string_view(text.data(), static_cast<std::size_t>(got)).find(what) !=
                          std::string_view::npos;
}

}  // namespace cellkeep::sandbox
