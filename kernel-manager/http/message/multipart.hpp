// SPDX-License-Identifier: Apache-2.0
//
// The parts of a multipart/form-data body (RFC 7578), cut out of it while it comes. Holds at most
// one head of a part and one piece of the body. Strict: what has no name, no end or too much before
// its data is refused. Not thread-safe.
#pragma once

#include "protocol/support/result.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::http {

/// The head of one part, and the parts of one body.
inline constexpr std::size_t kPartHeadBytesMax = 8ULL << 10U;
inline constexpr std::size_t kPartsMax = 1000;
inline constexpr std::size_t kBoundaryBytesMax = 70;  // RFC 2046, section 5.1.1

/// The boundary of a Content-Type; nullopt: it is not multipart/form-data, or has none.
std::optional<std::string> boundary_of(std::string_view content_type);

class MultipartReader {
 public:
    explicit MultipartReader(const std::string& boundary);

    struct Step {
        enum class Kind {
            kNeedMore,  // append()
            kPart,      // one begins: name and filename
            kData,      // data: valid until the next call
            kPartEnd,
            kEnd,  // of the body; what follows it is left alone
        } kind = Kind::kNeedMore;
        std::string name;
        std::string filename;
        std::string_view data;
    };
    void append(std::string_view bytes) { buffer_ += bytes; }
    /// kProtocol says what is wrong. kLimitExceeded: kPartHeadBytesMax, kPartsMax.
    Result<Step> next();

 private:
    enum class State { kPreamble, kDelimiter, kHead, kData, kEnd };
    Result<Step> read_delimiter();
    Result<Step> read_head();
    Step read_data();
    void take(std::size_t bytes) { taken_ = bytes; }

    std::string delimiter_;
    std::string buffer_;
    std::size_t taken_ = 0;  // of the buffer, by the last step
    State state_ = State::kPreamble;
    std::size_t parts_ = 0;
};

}  // namespace cellkeep::http
