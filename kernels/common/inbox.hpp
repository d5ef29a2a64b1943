// SPDX-License-Identifier: Apache-2.0
//
// What arrives on the link, in order. While user code waits for input (Jupyter messaging 5.5,
// "Messages on the stdin channel") frames that are not its answer are held and come out of next()
// later, in the order they came. One thread, until share(): from then on a second thread reads the
// link with divert(), so that requests of one type reach it while the first thread is busy.
#pragma once

#include "kernels/common/link.hpp"
#include "kernels/common/outbox.hpp"
#include "protocol/message.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::kernels {

/// Frames held while code waits for input, and frames that divert() has read and not handed on.
/// The server sends one shell request at a time, so a correct peer never comes near.
inline constexpr std::size_t kHeldMessagesMax = 1024;

struct InputReply {
    std::string value;
    bool eof = false;  // The client has no more input: {"eof": true}, a Cellkeep extension.
};

class Inbox {
 public:
    explicit Inbox(Link& link) : link_(link) {}

    /// Readable when next() or read_input() has something to read. Changes with share().
    int fd() const { return arrived_ ? arrived_.get() : link_.fd(); }
    bool has_held() const { return !held_.empty(); }

    /// A held message, else a blocking read (Link::read).
    Result<std::optional<protocol::Message>> next();

    /// Sends an input_request that answers the running request. A reply to an earlier one is stale
    /// from now on.
    Status request_input(Outbox& outbox, std::string_view prompt, bool password);

    /// Reads one frame (blocks, so first wait until the descriptor is readable). The reply to the
    /// last request_input, or nullopt if the frame was another. kUnavailable: the link closed.
    Result<std::optional<InputReply>> read_input();

    /// The same for any question on the stdin channel: request_input() is one of its uses. Content
    /// is the text of a JSON object. kLimitExceeded: past a limit of the wire; nothing was sent.
    Status ask(Outbox& outbox, std::string_view type, std::string_view content);
    /// The answer to the last question if it is of this type; else as read_input().
    Result<std::optional<protocol::Message>> read_answer(std::string_view type);

    /// Called once, by the thread that reads so far, before another one calls divert().
    Status share();

    /// The next control message of this type; whatever comes before it goes to the other methods.
    /// Returns nullopt if the link has closed or failed, which next() reports.
    std::optional<protocol::Message> divert(std::string_view type);

    /// For a forked child: closes its copies of the descriptors.
    void abandon();

 private:
    using Arrival = Result<std::optional<protocol::Message>>;

    Arrival receive();
    bool hand_over(Arrival arrival);

    Link& link_;
    std::deque<protocol::Message> held_;
    std::string question_id_;

    // After share(). arrived_ is a semaphore (eventfd(2)) that counts what shared_ holds; the end
    // of the link is its last entry and stays.
    UniqueFd arrived_;
    std::mutex shared_mutex_;
    std::deque<Arrival> shared_;
};

}  // namespace cellkeep::kernels
