// SPDX-License-Identifier: Apache-2.0
//
// Random bytes for identifiers, fetched from getrandom(2) a page at a time: an identifier costs no
// system call, and every byte still comes from the kernel. Bytes that are given out are erased
// here. A child of fork(2) finds its copy empty (madvise(2), MADV_WIPEONFORK), so no two processes
// give out the same bytes. Not for keys and tokens, which should not lie in memory before they are
// used. Owned by one thread.
#pragma once

#include "protocol/support/result.hpp"

#include <cstddef>
#include <span>

namespace cellkeep {

class RandomPool {
 public:
    /// Without memory that a fork wipes, each fill() asks the kernel.
    RandomPool();
    RandomPool(const RandomPool&) = delete;
    RandomPool& operator=(const RandomPool&) = delete;
    ~RandomPool();

    /// At most kBytesMax. Fails only as getrandom(2) does.
    Status fill(std::span<unsigned char> target);

    static constexpr std::size_t kBytesMax = 256;

 private:
    struct Page;
    Page* page_ = nullptr;  // null: there is none
};

/// Fills the target with getrandom(2), whatever its size.
Status fill_random(std::span<unsigned char> target);

}  // namespace cellkeep
