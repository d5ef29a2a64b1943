// SPDX-License-Identifier: Apache-2.0
//
// What a zygote's program does about signals, put aside while its forks are launchers and pid 1:
// the first process of a namespace gets from inside just the signals that it has handlers for
// (pid_namespaces(7)), and a handler of the program's must not run there.
#pragma once

namespace cellkeep::sandbox {

/// Every disposition to its default. Returns an errno. Once per process, with one thread.
int put_signals_aside() noexcept;

/// What put_signals_aside() found, again; nothing before it was called.
void restore_signals() noexcept;

}  // namespace cellkeep::sandbox
