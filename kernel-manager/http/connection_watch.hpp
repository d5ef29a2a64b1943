// SPDX-License-Identifier: Apache-2.0
//
// How a Connection sees its client go while the answer is made: a read that waits beside it. What
// it reads is the next request, kept for later. For connection.cpp and connection_stream.cpp only.
#pragma once

#include "kernel-manager/http/connection.hpp"
#include "kernel-manager/http/streaming.hpp"

#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <utility>

namespace cellkeep::http {

class Connection::Watch : public ClientWatch {
 public:
    explicit Watch(Connection& connection)
        : connection_(connection),
          ended_(connection.stream_->get_executor(), boost::asio::steady_timer::time_point::max()) {
    }
    void watch(std::function<void()> gone) override { connection_.begin_watch(std::move(gone)); }
    bool gone() const override { return gone_; }

 private:
    friend class Connection;
    void set_gone() {
        if (!std::exchange(gone_, true) && on_gone_) {
            on_gone_();
        }
    }

    Connection& connection_;
    std::function<void()> on_gone_;
    boost::asio::steady_timer ended_;  // never expires; cancelled when the read has ended
    bool running_ = false;
    bool stopping_ = false;
    bool gone_ = false;
};

}  // namespace cellkeep::http
