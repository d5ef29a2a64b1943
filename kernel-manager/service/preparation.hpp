// SPDX-License-Identifier: Apache-2.0
//
// Whether the image that sessions run from is there yet. A server may listen before that image is
// made, which takes minutes. A request for a session waits kPreparingPatience for it; then it is
// refused, and the client can ask again. io_context thread only.
#pragma once

#include "protocol/support/completion.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <memory>
#include <vector>

namespace cellkeep::session {

/// How long a request for a session waits for the environment: less than the 30 s after which usual
/// HTTP clients give up, so that they get the answer that says why.
inline constexpr std::chrono::seconds kPreparingPatience{20};

class Preparation {
 public:
    Preparation(boost::asio::io_context& io, bool preparing);
    Preparation(const Preparation&) = delete;
    Preparation& operator=(const Preparation&) = delete;
    ~Preparation() = default;

    bool is_preparing() const { return preparing_; }
    /// It is there, or the server ends. Those who wait go on. Later calls do nothing.
    void end();
    /// Returns when end() was called; kUnavailable after this long.
    static boost::asio::awaitable<Status> wait(
        std::shared_ptr<Preparation> self, std::chrono::milliseconds patience);

 private:
    boost::asio::io_context& io_;
    bool preparing_;
    /// One for each request that waits: as many as connections at most.
    std::vector<std::shared_ptr<Completion<bool>>> waiting_;
};

/// What a request gets that came too early.
Error refuse_while_preparing();

}  // namespace cellkeep::session
