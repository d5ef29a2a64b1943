// SPDX-License-Identifier: Apache-2.0
//
// The buffers of a message as the WebSocket library may copy them: by reference.
#pragma once

#include <boost/asio/buffer.hpp>

namespace cellkeep::http {

struct Pieces {
    using value_type = boost::asio::const_buffer;
    using const_iterator = const boost::asio::const_buffer*;
    const_iterator begin() const { return first; }
    const_iterator end() const { return last; }
    const boost::asio::const_buffer* first;
    const boost::asio::const_buffer* last;
};

}  // namespace cellkeep::http
