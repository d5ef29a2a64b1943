// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/preparation.hpp"

#include <boost/asio/steady_timer.hpp>

namespace cellkeep::session {

Error refuse_while_preparing() {
    return Error::in_field(
        ErrorCode::kUnavailable,
        "environment",
        "the server is still making the image that sessions run from. /healthz says \"preparing\" "
        "until it is there");
}

Preparation::Preparation(boost::asio::io_context& io, bool preparing)
    : io_(io), preparing_(preparing) {}

boost::asio::awaitable<Status> Preparation::wait(
    std::shared_ptr<Preparation> self, std::chrono::milliseconds patience) {
    if (!self->is_preparing()) {
        co_return ok();
    }
    // Either sets it: the end, or the timer.
    const auto turn = std::make_shared<Completion<bool>>(self->io_);
    boost::asio::steady_timer timer(self->io_, patience);
    timer.async_wait([turn](const boost::system::error_code& error) {
        if (!error) {
            turn->set(false);
        }
    });
    self->waiting_.push_back(turn);
    (void)co_await Completion<bool>::wait(turn);
    std::erase(self->waiting_, turn);
    co_return self->is_preparing() ? Status(refuse_while_preparing()) : Status(ok());
}

void Preparation::end() {
    preparing_ = false;
    for (const auto& turn : waiting_) {
        turn->set(true);
    }
}

}  // namespace cellkeep::session
