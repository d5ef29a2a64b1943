// SPDX-License-Identifier: Apache-2.0
//
// How jemalloc, which the program is linked with, is set (jemalloc(3), "TUNING"): what sessions
// have used goes back to the system within seconds of their end, page by page on a thread of
// jemalloc's own, so that the event loop does not wait for it
// (docs/decisions/0012-memory-goes-back.md).
#include <jemalloc/jemalloc.h>

// Declared by the library, which looks for it by this name, as a variable.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
const char* malloc_conf =
    "background_thread:true,max_background_threads:1,dirty_decay_ms:1000,muzzy_decay_ms:0";
