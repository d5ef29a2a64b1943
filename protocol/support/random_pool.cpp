// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/random_pool.hpp"

#include <sys/mman.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace cellkeep {

/// Exactly one page of the smallest size there is, since only whole pages are wiped.
struct RandomPool::Page {
    static constexpr std::size_t kSize = 4096;
    std::size_t left;  // of bytes, from the front; 0 after a fork
    std::array<unsigned char, kSize - sizeof(std::size_t)> bytes;
};

RandomPool::RandomPool() {
    static_assert(sizeof(Page) == Page::kSize);
    void* memory =
        ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return;
    }
    if (::madvise(memory, sizeof(Page), MADV_WIPEONFORK) != 0) {
        (void)::munmap(memory, sizeof(Page));  // Ignored: cannot fail on what mmap(2) gave.
        return;
    }
    page_ = static_cast<Page*>(memory);
}

RandomPool::~RandomPool() {
    if (page_ != nullptr) {
        ::explicit_bzero(page_, sizeof(Page));
        (void)::munmap(page_, sizeof(Page));  // Ignored: as above.
    }
}

Status RandomPool::fill(std::span<unsigned char> target) {
    CELLKEEP_CHECK(target.size() <= kBytesMax);
    if (target.empty()) {
        return ok();  // Its pointer may be null, which memcpy forbids even for no bytes.
    }
    if (page_ == nullptr) {
        return fill_random(target);
    }
    if (page_->left < target.size()) {
        page_->left = 0;
        BOOST_OUTCOME_TRY(fill_random(page_->bytes));
        page_->left = page_->bytes.size();
    }
    page_->left -= target.size();
    unsigned char* given = page_->bytes.data() + page_->left;
    std::memcpy(target.data(), given, target.size());
    ::explicit_bzero(given, target.size());
    return ok();
}

Status fill_random(std::span<unsigned char> target) {
    while (!target.empty()) {
        // A signal may cut requests of more than 256 bytes short (getrandom(2)).
        const ssize_t got = ::getrandom(target.data(), target.size(), 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return Error::from_errno(errno, "getrandom");
        }
        target = target.subspan(static_cast<std::size_t>(got));
    }
    return ok();
}

}  // namespace cellkeep
