// SPDX-License-Identifier: Apache-2.0
//
// A WebSocket message as far as it has come, in pieces: each is filled with zeros in one turn of
// the event loop, and none is copied into a larger one there.
#pragma once

#include <boost/asio/buffer.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::http {

class MessageArrival {
 public:
    static constexpr std::size_t kFirstBytes = 16ULL << 10U;
    static constexpr std::size_t kPieceBytesMax = 1ULL << 20U;

    std::size_t bytes() const { return bytes_; }
    bool is_full() const { return pieces_.empty() || in_last_ == pieces_.back().size(); }
    /// For how many more bytes to claim memory: as many as have come, so that a peer cannot hold
    /// what it merely announces. Of a long message all that its frame announces, so that long ones
    /// which grow in step do not all wait for what the others hold. hint(N): what is still to come
    /// of the frame, or N if that is more or not known.
    template <typename Hint>
    std::size_t wanted(const Hint& hint, std::size_t message_bytes_max) const {
        const std::size_t doubled = std::max(bytes_, kFirstBytes);
        const std::size_t left = message_bytes_max - std::min(bytes_, message_bytes_max);
        if (bytes_ >= kPieceBytesMax && left > 0) {
            if (const std::size_t announced = hint(left + 1); announced <= left) {
                return announced;
            }
        }
        return std::min(hint(doubled), doubled);
    }
    /// For kPieceBytesMax of these bytes at most. Precondition: is_full(). A message may come in
    /// any number of reads; this is not for each.
    void make_room(std::size_t bytes) {
        pieces_.emplace_back(std::min(bytes, kPieceBytesMax), '\0');
        in_last_ = 0;
    }
    boost::asio::mutable_buffer room() {
        std::string& last = pieces_.back();
        return boost::asio::buffer(last.data() + in_last_, last.size() - in_last_);
    }
    /// So many bytes have come into the room.
    void add(std::size_t bytes) {
        bytes_ += bytes;
        in_last_ += bytes;
    }
    std::vector<std::string> take() {
        if (!pieces_.empty()) {
            pieces_.back().resize(in_last_);
        }
        return std::move(pieces_);
    }

 private:
    std::vector<std::string> pieces_;  // the last with room
    std::size_t bytes_ = 0;
    std::size_t in_last_ = 0;  // of them
};

}  // namespace cellkeep::http
