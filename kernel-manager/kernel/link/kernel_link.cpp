// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/link/kernel_link.hpp"

#include "protocol/limits.hpp"

#include <boost/asio/post.hpp>

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace cellkeep::session {

using protocol::Message;

namespace {

/// One read; also how much one wake-up reads before other sessions get their turn.
constexpr std::size_t kLinkReadBytes = limits::kLinkTurnBytesMax;

/// sendmsg(2). descriptor: goes along; -1: none does.
ssize_t write_pieces(int socket, std::span<const iovec> pieces, int descriptor) {
    msghdr header{};
    // sendmsg(2) only reads the pieces; the type is historical.
    header.msg_iov = const_cast<iovec*>(pieces.data());
    header.msg_iovlen = pieces.size();
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    if (descriptor >= 0) {
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        cmsghdr* const rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(int));
    }
    return ::sendmsg(socket, &header, MSG_NOSIGNAL);
}

/// What one read brings goes to the link's decoder at once, so all links of a thread share it: a
/// buffer for each would cost a thousand sessions 256 MB.
char* read_buffer() {
    thread_local const std::unique_ptr<char[]> buffer(new char[kLinkReadBytes]);
    return buffer.get();
}

}  // namespace

Result<std::shared_ptr<KernelLink>> KernelLink::create(
    boost::asio::io_context& io, UniqueFd socket, Events events, FrameBounds bounds) {
    std::shared_ptr<KernelLink> link(new KernelLink(io, std::move(events), bounds));
    boost::system::error_code error;
    link->socket_.assign(socket.get(), error);
    if (error) {
        return Error(ErrorCode::kSystem, "watch the kernel link: " + error.message());
    }
    (void)socket.release();
    return link;
}

KernelLink::KernelLink(boost::asio::io_context& io, Events events, FrameBounds bounds)
    : socket_(io),
      wakeups_(boost::asio::use_service<Wakeups>(io)),
      events_(std::move(events)),
      frame_(
          io,
          bounds,
          {.on_memory =
               [this] {
                   boost::asio::post(socket_.get_executor(), [link = weak_from_this()] {
                       if (const auto self = link.lock()) {
                           self->wait_readable();
                       }
                   });
               },
           .on_late =
               [this] {
                   fail(
                       Error(ErrorCode::kTimeout, "kernel link: the rest of a frame did not come"));
               }}) {}

void KernelLink::start() {
    wait_readable();
}

Status KernelLink::send(const protocol::Message& message, UniqueFd descriptor) {
    if (closed_) {
        return Error(ErrorCode::kConflict, "kernel link: closed");
    }
    const std::string_view frame = message.frame();
    if (write_bytes_ + frame.size() > limits::kLinkWriteQueueBytesMax) {
        return Error(
            ErrorCode::kLimitExceeded, "kernel link: too much is waiting to be read by the kernel");
    }
    Write write{protocol::encode_link_prefix(frame.size()), message, std::move(descriptor)};
    write_bytes_ += write.size();
    writes_.push_back(std::move(write));
    flush();
    return ok();
}

void KernelLink::pause_reading() {
    paused_ = true;
}

void KernelLink::resume_reading() {
    if (!std::exchange(paused_, false) || closed_) {
        return;
    }
    // Frames that were already here when reading stopped come first.
    go_on_soon();
}

void KernelLink::go_on_soon() {
    if (std::exchange(going_on_, true)) {
        return;
    }
    boost::asio::post(socket_.get_executor(), [self = shared_from_this()] {
        const Wakeups::Turn turn(self->wakeups_);
        self->going_on_ = false;
        Turn bounds = begin_turn();
        if (!self->closed_ && !self->paused_ && self->hand_out(bounds)) {
            self->wait_readable();
        }
    });
}

KernelLink::Turn KernelLink::begin_turn() {
    return {limits::kLinkTurnBytesMax, std::chrono::steady_clock::now() + limits::kLinkTurnTimeMax};
}

bool KernelLink::Turn::is_over() const {
    return !draining && (bytes == 0 || std::chrono::steady_clock::now() >= until);
}

void KernelLink::catch_up(const std::function<bool()>& enough) {
    if (closed_ || paused_ || frame_.waits_for_memory()) {
        return;
    }
    const auto self = shared_from_this();
    Turn turn = begin_turn();
    turn.until = std::chrono::steady_clock::time_point::max();
    // What a posted turn was to handle comes first. On a busy machine its own time was over before
    // it had handled anything.
    if (going_on_ && (!hand_out(turn, &enough) || paused_ || turn.bytes == 0 || enough())) {
        return;
    }
    char* const buffer = read_buffer();
    const ssize_t got = ::read(socket_.native_handle(), buffer, kLinkReadBytes);
    if (got <= 0) {
        return;  // nothing is there, or its end, which the wait for more reports
    }
    decoder_.append({buffer, static_cast<std::size_t>(got)});
    (void)hand_out(turn, &enough);  // the wait for more goes on, or the link is closed
}

void KernelLink::drain() {
    paused_ = false;
    Turn turn;
    turn.draining = true;
    if (!hand_out(turn)) {
        return;
    }
    int available = 0;
    if (closed_ || ::ioctl(socket_.native_handle(), FIONREAD, &available) < 0) {
        return;
    }
    std::size_t turns = static_cast<std::size_t>(available) / kLinkReadBytes + 2;
    while (turns-- > 0 && !closed_ && read_some(turn) == ReadOutcome::kMore) {
    }
}

bool KernelLink::is_at_rest() const {
    return !closed_ && !paused_ && !going_on_ && !waiting_writable_ && writes_.empty() &&
           !intake_.busy() && decoder_.pending() == 0 && decoder_.awaited() == 0;
}

UniqueFd KernelLink::pass_on() {
    closed_ = true;
    frame_.finish();
    return UniqueFd(socket_.release());
}

void KernelLink::close() {
    if (std::exchange(closed_, true)) {
        return;
    }
    boost::system::error_code ignored;  // closing a descriptor that we own cannot fail usefully
    socket_.close(ignored);
    intake_.clear();
    frame_.finish();
    writes_.clear();
    write_bytes_ = 0;
}

void KernelLink::wait_readable() {
    if (waiting_readable_ || closed_ || paused_ || going_on_ || frame_.waits_for_memory()) {
        return;
    }
    waiting_readable_ = true;
    frame_.begin_wait();
    socket_.async_wait(
        boost::asio::posix::stream_descriptor::wait_read,
        [self = shared_from_this()](const boost::system::error_code& error) {
            const Wakeups::Turn turn(self->wakeups_);
            self->waiting_readable_ = false;
            self->frame_.end_wait();
            if (error || self->closed_ || self->paused_ || self->going_on_) {
                return;
            }
            // One read per turn: a kernel that floods gets its share, not the thread.
            if (self->read_some(begin_turn()) != ReadOutcome::kClosed) {
                self->wait_readable();
            }
        });
}

KernelLink::ReadOutcome KernelLink::read_some(Turn turn) {
    char* const buffer = read_buffer();
    const ssize_t got = ::read(socket_.native_handle(), buffer, kLinkReadBytes);
    if (got > 0) {
        decoder_.append({buffer, static_cast<std::size_t>(got)});
        return hand_out(turn) ? ReadOutcome::kMore : ReadOutcome::kClosed;
    }
    if (got == 0) {
        fail(Error(ErrorCode::kProtocol, "kernel link: closed by the kernel"));
        return ReadOutcome::kClosed;
    }
    const int saved_errno = errno;
    if (saved_errno == EAGAIN || saved_errno == EINTR) {
        return ReadOutcome::kEmpty;
    }
    fail(Error::from_errno(saved_errno, "kernel link: read"));
    return ReadOutcome::kClosed;
}

bool KernelLink::hand_out(Turn& turn, const std::function<bool()>* enough) {
    const auto self = shared_from_this();  // an event may let go of the link
    while (!closed_ && !paused_) {
        if (turn.is_over()) {
            go_on_soon();
            break;
        }
        auto message = next_message(turn);
        if (message.has_error()) {
            fail(std::move(message).error().with_context("kernel link"));
            return false;
        }
        if (message.value().has_value()) {
            events_.on_message(*std::move(message).value());
            if (enough != nullptr && (*enough)()) {
                if (!closed_ && !paused_) {
                    go_on_soon();
                }
                break;
            }
        } else if (!intake_.busy()) {
            frame_.update(decoder_.pending(), decoder_.awaited());
            break;  // no whole frame is there
        }
    }
    return !closed_;
}

/// Nothing: more is to be done in a later turn if a frame is in work, else more is to be read.
Result<std::optional<Message>> KernelLink::next_message(Turn& turn) {
    if (!intake_.busy()) {
        if (std::exchange(frame_taken_, false)) {
            frame_.finish();
        }
        BOOST_OUTCOME_TRY(auto frame, decoder_.next());
        if (!frame.has_value()) {
            return std::optional<Message>();
        }
        frame_taken_ = true;
        BOOST_OUTCOME_TRY(intake_.begin(*std::move(frame)));
    }
    if (turn.draining && intake_.unscanned() > limits::kLinkDrainFrameBytesMax) {
        BOOST_OUTCOME_TRY(auto message, intake_.pass_unscanned());
        return std::optional<Message>(std::move(message));
    }
    BOOST_OUTCOME_TRY(
        auto progress, intake_.advance(turn.draining ? limits::kFrameBytesMax : turn.bytes));
    turn.bytes -= std::min(turn.bytes, progress.bytes);
    return std::move(progress.message);
}

std::span<const iovec> KernelLink::Write::left(
    std::size_t offset, std::array<iovec, 2>& pieces) const {
    const std::string_view frame = message.frame();
    const std::size_t of_prefix = std::min(offset, prefix.size());
    const std::size_t of_frame = offset - of_prefix;
    // writev(2) only reads what iov_base points to; its type is historical.
    pieces[0] = {const_cast<char*>(prefix.data()) + of_prefix, prefix.size() - of_prefix};
    pieces[1] = {const_cast<char*>(frame.data()) + of_frame, frame.size() - of_frame};
    return of_prefix < prefix.size() ? std::span(pieces) : std::span(pieces).subspan(1);
}

void KernelLink::flush() {
    while (!writes_.empty() && !waiting_writable_ && !closed_) {
        Write& front = writes_.front();
        // The message's own bytes: a request of many megabytes is not copied.
        std::array<iovec, 2> pieces{};
        const auto left = front.left(write_offset_, pieces);
        const ssize_t wrote = write_pieces(socket_.native_handle(), left, front.descriptor.get());
        if (wrote < 0) {
            const int saved_errno = errno;
            if (saved_errno == EINTR) {
                continue;
            }
            if (saved_errno == EAGAIN) {
                wait_writable();
                return;
            }
            // The reader sees the end too, after what the kernel said last: it reports the close.
            writes_.clear();
            write_bytes_ = 0;
            write_offset_ = 0;
            return;
        }
        front.descriptor.reset();
        write_offset_ += static_cast<std::size_t>(wrote);
        if (write_offset_ == front.size()) {
            write_bytes_ -= front.size();
            writes_.pop_front();
            write_offset_ = 0;
        }
    }
}

void KernelLink::wait_writable() {
    waiting_writable_ = true;
    socket_.async_wait(
        boost::asio::posix::stream_descriptor::wait_write,
        [self = shared_from_this()](const boost::system::error_code& error) {
            self->waiting_writable_ = false;
            if (!error && !self->closed_) {
                self->flush();
            }
        });
}

void KernelLink::fail(const Error& error) {
    if (closed_) {
        return;
    }
    close();
    events_.on_closed(error);
}

}  // namespace cellkeep::session
