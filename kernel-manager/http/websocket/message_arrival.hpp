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
    /// How much more may be reserved at once. It doubles as the message comes, so that a peer
    /// cannot make us reserve what it merely announces.
    std::size_t most() const { return std::max(bytes_, kFirstBytes); }
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
