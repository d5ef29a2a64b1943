// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/link/unfinished_frame.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::session {

UnfinishedFrame::UnfinishedFrame(boost::asio::io_context& io, FrameBounds bounds, Events events)
    : bounds_(bounds),
      claim_(boost::asio::use_service<FrameMemory>(io), std::move(events.on_memory)),
      timer_(io),
      on_late_(std::move(events.on_late)) {}

void UnfinishedFrame::update(std::size_t arrived, std::size_t announced) {
    arrived_ = arrived;
    if (announced > bounds_.unclaimed && claim_.held() == 0 && !claim_.waits()) {
        (void)claim_.take(announced);  // waits_for_memory() says whether it was granted
    }
}

std::chrono::nanoseconds UnfinishedFrame::time_left() const {
    const std::chrono::duration<double> earned(
        static_cast<double>(arrived_) / static_cast<double>(bounds_.bytes_per_second));
    return bounds_.wait + std::chrono::duration_cast<std::chrono::nanoseconds>(earned) - waited_;
}

void UnfinishedFrame::begin_wait() {
    if (arrived_ == 0 || waiting_) {
        return;
    }
    waiting_ = true;
    wait_begun_ = std::chrono::steady_clock::now();
    timer_.expires_after(std::max(time_left(), std::chrono::nanoseconds(0)));
    timer_.async_wait([this, number = wait_number_, mine = *wait_number_](
                          const boost::system::error_code& error) {
        if (!error && *number == mine) {
            on_late_();
        }
    });
}

void UnfinishedFrame::end_wait() {
    if (std::exchange(waiting_, false)) {
        waited_ += std::chrono::steady_clock::now() - wait_begun_;
        ++*wait_number_;
        timer_.cancel();
    }
}

void UnfinishedFrame::finish() {
    end_wait();
    arrived_ = 0;
    waited_ = {};
    claim_.release();
}

}  // namespace cellkeep::session
