// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/contents/contents_memory.hpp"

#include "kernel-manager/jupyter/rest/contents/limits.hpp"

namespace cellkeep::jupyter {

Result<ContentsMemory::Claim> ContentsMemory::claim(
    const std::string& principal, std::size_t bytes) {
    if (bytes == 0) {
        return Claim();
    }
    std::size_t& own = book_->by_principal[principal];
    if (book_->total + bytes > limits::kContentsHeldBytesMax ||
        own + bytes > limits::kContentsPrincipalBytesMax) {
        if (own == 0) {
            book_->by_principal.erase(principal);
        }
        return Error(
            ErrorCode::kUnavailable,
            "Files that other requests asked for are still on their way and hold the memory for "
            "such answers.",
            "Read those answers to their end, or try again later.");
    }
    book_->total += bytes;
    own += bytes;
    const auto give_back = [book = book_, principal, bytes](void*) {
        book->total -= bytes;
        const auto found = book->by_principal.find(principal);
        if ((found->second -= bytes) == 0) {
            book->by_principal.erase(found);
        }
    };
    // The pointer is never followed: it only has to be one.
    return Claim(book_.get(), give_back);
}

}  // namespace cellkeep::jupyter
