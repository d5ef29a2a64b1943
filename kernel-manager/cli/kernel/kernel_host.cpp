// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/kernel/kernel_host.hpp"

#include "kernel-manager/cli/run/console.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "protocol/limits.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include <csignal>
#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

KernelHost::KernelHost(asio::io_context& io, session::ServiceConfig config)
    : io_(io), signals_(io, SIGINT, SIGTERM), service_(io, std::move(config)) {
    signals_.add(SIGHUP);
    signals_.add(SIGQUIT);
    service_.add_listener(this);
    await_signal();
}

KernelHost::~KernelHost() {
    stop();
}

Status KernelHost::end_with(pid_t parent) {
    BOOST_OUTCOME_TRY(parent_, ParentWatch::create(io_, parent, [this] { stop(); }));
    return ok();
}

Status KernelHost::run(session::SessionOptions options, jupyter::BoundSockets sockets) {
    sockets_.emplace(std::move(sockets));
    asio::co_spawn(io_, open(std::move(options)), asio::detached);
    while (!ended_ && io_.run_one() > 0) {
    }
    boost::system::error_code ignored;  // Ignored: the wait ends either way.
    (void)signals_.cancel(ignored);
    parent_.reset();
    // What was posted before the end; there is nothing to wait for.
    io_.restart();
    (void)io_.poll();
    front_.reset();
    sockets_.reset();
    if (failure_.has_value()) {
        return *failure_;
    }
    return ok();
}

asio::awaitable<void> KernelHost::open(session::SessionOptions options) {
    auto created = co_await service_.create(std::move(options));
    Status served = ok();
    if (created.has_error()) {
        served = std::move(created).error();
    } else {
        session_ = std::move(created).value();
        session_->subscribe(this);
        served = serve();
    }
    if (served.has_error()) {
        if (!stopping_) {
            failure_ = served.error();
        }
        stop();
        ended_ = true;
    }
}

Status KernelHost::serve() {
    jupyter::ZmqSessionConfig config;
    config.stall_max = limits::kZmqStallMax;
    config.log = [](const std::string& line) { print_error("cellkeep: " + line + "\n"); };
    // Restart or not: the Jupyter program waits for this process to end, and starts another one if
    // it wants to (jupyter_client, KernelManager.restart_kernel).
    config.on_shutdown_answered = [this] { stop(); };
    BOOST_OUTCOME_TRY(
        front_,
        jupyter::ZmqSession::create(io_, std::move(*sockets_), session_, std::move(config)));
    sockets_.reset();
    return ok();
}

Status KernelHost::on_session_created(const std::shared_ptr<session::Session>& /*session*/) {
    return ok();
}

void KernelHost::on_session_closed(const std::string& /*session_id*/) {
    if (front_ != nullptr) {
        front_->close();
    }
    ended_ = true;
}

void KernelHost::on_output(const session::OutputEntry& entry) {
    if (entry.message.header().msg_type == "status" &&
        session_->state() == session::KernelState::kDead) {
        // Later: the session may be about to start a fresh interpreter.
        asio::post(io_, [this] { look_after_death(); });
    }
}

/// A kernel that stays dead ends its process, so that the Jupyter program sees it and can start
/// another.
void KernelHost::look_after_death() {
    if (stopping_ || session_->state() != session::KernelState::kDead) {
        return;
    }
    const auto death = session_->info().death;
    failure_ = Error(
        ErrorCode::kUnavailable,
        death.has_value() ? session::describe(*death) : "The interpreter is gone.");
    stop();
}

void KernelHost::await_signal() {
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
        if (error) {
            return;
        }
        if (signal != SIGINT) {
            stop();
            return;
        }
        if (session_ != nullptr) {
            // Ignored: a dead kernel runs nothing that could be interrupted.
            (void)session_->interrupt();
        }
        await_signal();
    });
}

void KernelHost::stop() {
    if (std::exchange(stopping_, true)) {
        return;
    }
    // First, so that no "dead" goes out: JupyterLab would give the kernel up in the middle of a
    // restart (@jupyterlab/services, KernelConnection._updateStatus).
    if (front_ != nullptr) {
        front_->close();
    }
    service_.shutdown();
}

}  // namespace cellkeep::cli
