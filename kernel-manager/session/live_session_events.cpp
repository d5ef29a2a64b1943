// SPDX-License-Identifier: Apache-2.0
//
// What pid 1 of the sandbox tells, and whom it concerns.
#include "kernel-manager/session/live_session.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <utility>

namespace cellkeep::session {

void LiveSession::watch_sandbox() {
    sandbox_events_.async_wait(
        boost::asio::posix::stream_descriptor::wait_read,
        [weak = weak_from_this()](const boost::system::error_code& error) {
            const auto self = weak.lock();
            if (error || !self || self->closed_) {
                return;
            }
            self->take_sandbox_events();
            if (!self->closed_ && self->sandbox_events_.is_open()) {
                self->watch_sandbox();
            }
        });
}

void LiveSession::take_sandbox_events() {
    while (!closed_) {
        const std::optional<sandbox::SandboxEvent> event = inbox_.next();
        if (!event.has_value()) {
            return;
        }
        switch (event->kind) {
            case sandbox::SandboxEvent::Kind::kSandboxDied: {
                boost::system::error_code ignored;  // our own duplicate descriptor
                sandbox_events_.close(ignored);
                for (SupervisedKernel* lane : lanes()) {
                    lane->on_sandbox_died();
                }
                return;
            }
            case sandbox::SandboxEvent::Kind::kDenied:
                tell_denial(event->denial);
                break;
            case sandbox::SandboxEvent::Kind::kSwept:
                sweeping_all_ = false;
                for (SupervisedKernel* lane : lanes()) {
                    lane->on_swept();
                }
                launch_lanes();
                break;
            case sandbox::SandboxEvent::Kind::kGroupSwept:
                for (SupervisedKernel* lane : lanes()) {
                    if (lane->group() == event->group) {
                        lane->on_swept();
                    }
                }
                break;
            case sandbox::SandboxEvent::Kind::kWorkerExited:
                for (SupervisedKernel* lane : lanes()) {
                    lane->on_worker_exit(event->worker);
                }
                break;
        }
    }
}

void LiveSession::tell_denial(const sandbox::Denial& denial) {
    // By which of them is not known.
    for (SupervisedKernel* lane : lanes()) {
        lane->on_denied(denial);
    }
}

void LiveSession::take_denials() {
    // An exit is not acted on here: we are inside what the interpreter says.
    const SandboxInbox::Denials taken = inbox_.take_denials();
    for (const sandbox::Denial& denial : taken.denials) {
        tell_denial(denial);
    }
    if (taken.must_continue) {
        boost::asio::post(io_, [self = shared_from_this()] { self->take_sandbox_events(); });
    }
}

Status LiveSession::begin_sweep(SupervisedKernel& lane) {
    const std::vector<SupervisedKernel*> all = lanes();
    const bool others_live =
        std::any_of(all.begin(), all.end(), [&](const SupervisedKernel* other) {
            return other != &lane && other->has_process() && !other->has_ended();
        });
    if (others_live) {
        return sandbox_.begin_sweep(lane.group());
    }
    // Also what has got away from its group, where that can be.
    Status begun = sandbox_.begin_sweep();
    sweeping_all_ = begun.has_value();
    return begun;
}

}  // namespace cellkeep::session
