// SPDX-License-Identifier: Apache-2.0
//
// What a kernel's link brings, from frame to message, in slices: the content is checked and its
// members are found, line ends between its tokens become spaces, and stream text that is longer
// than limits::kStreamMessageBytesMax becomes several messages. So nothing behind it has work that
// grows with a guest's message. One frame at a time. Not thread-safe.
#pragma once

#include "protocol/content_outline.hpp"
#include "protocol/message.hpp"
#include "protocol/support/result.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace cellkeep::session {

class MessageIntake {
 public:
    /// Takes the bytes of a v1 frame. Precondition: !busy(). Fails as Message::from_frame, as far
    /// as the offset table goes.
    Status begin(std::string frame);
    /// A frame is in work.
    bool busy() const { return work_ != nullptr; }
    /// Bytes of it that have not been looked at; 0 if there is none, or they all were.
    std::size_t unscanned() const;

    struct Progress {
        std::optional<protocol::Message> message;  // the next one, if it is ready
        std::size_t bytes = 0;                     // looked at or copied
    };
    /// Works on about this number of its bytes. A content that is no JSON object is passed on as it
    /// came. Precondition: busy(). Fails as Message::from_frame; the frame is then gone.
    Result<Progress> advance(std::size_t bytes);
    /// Passes the frame on without a further look, as if its content were no JSON object.
    /// Precondition: busy().
    Result<protocol::Message> pass_unscanned();
    /// Lets go of what it has.
    void clear() { work_.reset(); }

 private:
    struct Part {
        std::size_t begin = 0;
        std::size_t end = 0;
        bool done = false;
    };
    /// One frame. ContentScan cannot move, hence on the heap.
    struct Work {
        std::string frame;
        Part metadata;
        Part content;
        protocol::JsonScanner metadata_scan;
        protocol::ContentScan content_scan;
        std::optional<protocol::Message> split;  // stream text that is handed out in pieces
        std::size_t split_at = 0;                // in what stands between its quotes
    };
    template <typename Scan>
    std::size_t scan(Part& part, Scan& scanner, std::size_t bytes);
    Result<Progress> finish_scan(std::size_t bytes);
    Progress next_piece();

    std::unique_ptr<Work> work_;
};

}  // namespace cellkeep::session
