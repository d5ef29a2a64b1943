// SPDX-License-Identifier: Apache-2.0
//
// The same as kernels/common/heap.hpp for CPython's own allocator, which serves objects of up to
// 512 bytes from pools of one size each.
#pragma once

namespace cellkeep::kernels::python {

/// From now on its arenas lie side by side (ArenaSpace). Before CPython starts, once.
void keep_arenas_together();

/// Takes every free block of every pool that is in use, for good. Needs the interpreter's lock.
/// Does nothing where CPython uses another allocator or reports on it in another form.
void fill_object_gaps();

}  // namespace cellkeep::kernels::python
