// SPDX-License-Identifier: Apache-2.0
//
// Prepares the C library's heap of a zygote for its forks. A fork that allocates writes to pages
// with free room, and each of those that it shares with the zygote is copied for it.
#pragma once

namespace cellkeep::kernels {

/// Takes what is free between the allocations of this process, for good, so that forks of it
/// allocate from pages of their own at the heap's end, one after the other. Costs the zygote what
/// was free (some hundred KiB), once. One thread.
void fill_heap_gaps();

}  // namespace cellkeep::kernels
