// SPDX-License-Identifier: Apache-2.0
//
// The memory that answers with the content of files hold, from when the file is read until the
// client has taken the answer: a client that does not read keeps it. Bounded for the server and for
// each principal. io_context thread only.
#pragma once

#include "protocol/support/result.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <string>

namespace cellkeep::jupyter {

class ContentsMemory {
 public:
    /// Bytes that are held until the last copy has gone.
    using Claim = std::shared_ptr<void>;

    /// kUnavailable past limits::kContentsHeldBytesMax or limits::kContentsPrincipalBytesMax.
    Result<Claim> claim(const std::string& principal, std::size_t bytes);
    std::size_t held() const { return book_->total; }

 private:
    /// Outlives this for claims of answers that are still on their way.
    struct Book {
        std::size_t total = 0;
        std::map<std::string, std::size_t> by_principal;
    };
    std::shared_ptr<Book> book_ = std::make_shared<Book>();
};

}  // namespace cellkeep::jupyter
