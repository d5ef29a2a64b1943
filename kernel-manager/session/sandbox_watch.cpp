// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/sandbox_watch.hpp"

#include "protocol/support/unique_fd.hpp"

#include <boost/asio/post.hpp>

#include <fcntl.h>

#include <cerrno>
#include <optional>
#include <utility>

namespace cellkeep::session {

SandboxWatch::SandboxWatch(
    boost::asio::io_context& io,
    SandboxInbox::Source source,
    Listener listener,
    KeepAlive keep_session)
    : io_(io),
      inbox_(std::move(source)),
      listener_(std::move(listener)),
      keep_session_(std::move(keep_session)),
      descriptor_(io) {}

Status SandboxWatch::begin(int fd) {
    // A duplicate, because the sandbox keeps and closes its own.
    UniqueFd events(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!events) {
        return Error::from_errno(errno, "fcntl(F_DUPFD_CLOEXEC)");
    }
    boost::system::error_code error;
    descriptor_.assign(events.get(), error);
    if (error) {
        return Error(ErrorCode::kSystem, "watch the sandbox: " + error.message());
    }
    (void)events.release();
    wait();
    return ok();
}

void SandboxWatch::wait() {
    descriptor_.async_wait(
        boost::asio::posix::stream_descriptor::wait_read,
        [this, weak = std::weak_ptr(alive_)](const boost::system::error_code& error) {
            if (error || weak.expired() || closed_) {
                return;
            }
            const std::shared_ptr<const void> session = keep_session_();
            if (!session) {
                return;
            }
            take();
            if (!closed_ && descriptor_.is_open()) {
                wait();
            }
        });
}

void SandboxWatch::take() {
    while (!closed_) {
        const std::optional<sandbox::SandboxEvent> event = inbox_.next();
        if (!event.has_value()) {
            return;
        }
        switch (event->kind) {
            case sandbox::SandboxEvent::Kind::kSandboxDied: {
                boost::system::error_code ignored;  // our own duplicate descriptor
                descriptor_.close(ignored);
                sandbox_gone_ = true;
                listener_.on_sandbox_died();
                return;
            }
            case sandbox::SandboxEvent::Kind::kDenied:
                listener_.on_denied(event->denial);
                break;
            case sandbox::SandboxEvent::Kind::kSwept:
                listener_.on_swept();
                break;
            case sandbox::SandboxEvent::Kind::kGroupSwept:
                listener_.on_group_swept(event->group);
                break;
            case sandbox::SandboxEvent::Kind::kWorkerExited:
                listener_.on_worker_exit(event->worker);
                break;
        }
    }
}

void SandboxWatch::take_denials() {
    // An exit is not acted on here: the caller is inside what the interpreter says.
    const SandboxInbox::Denials taken = inbox_.take_denials();
    for (const sandbox::Denial& denial : taken.denials) {
        listener_.on_denied(denial);
    }
    if (taken.must_continue) {
        boost::asio::post(io_, [this, weak = std::weak_ptr(alive_), session = keep_session_()] {
            if (session && !weak.expired()) {
                take();
            }
        });
    }
}

void SandboxWatch::close() {
    closed_ = true;
    boost::system::error_code ignored;  // our own duplicate descriptor
    descriptor_.close(ignored);
}

}  // namespace cellkeep::session
