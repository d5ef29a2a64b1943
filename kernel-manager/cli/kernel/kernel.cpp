// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/kernel/kernel.hpp"

#include "kernel-manager/cli/commands.hpp"
#include "kernel-manager/cli/kernel/kernel_host.hpp"
#include "kernel-manager/cli/run/console.hpp"
#include "kernel-manager/cli/run/run_to_end.hpp"
#include "kernel-manager/kernel/reply_sink.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/completion.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

namespace {

Result<protocol::ConnectionInfo> load_connection(const std::string& path) {
    BOOST_OUTCOME_TRY(
        auto connection, protocol::load_connection_file(path, protocol::OthersMay::kRead));
    return connection;
}

Status serve_kernel(const KernelCommand& command) {
    // The sockets and whatever else we make are for this user alone.
    (void)::umask(S_IRWXG | S_IRWXO);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): read once at start, before any other thread exists.
    BOOST_OUTCOME_TRY(const auto parent, parse_parent_pid(std::getenv("JPY_PARENT_PID")));
    BOOST_OUTCOME_TRY(auto connection, load_connection(command.connection_file));
    asio::io_context io(1);
    // Destroyed last: it waits until what was sent has arrived, at most limits::kZmqLinger.
    BOOST_OUTCOME_TRY(const auto context, jupyter::ZmqContext::create());
    BOOST_OUTCOME_TRY(
        auto sockets,
        with_context(
            jupyter::bind_given_sockets(context, std::move(connection), limits::kZmqHighWaterMark),
            command.connection_file));
    BOOST_OUTCOME_TRY(auto start, begin_notebook_service(command.notebook));
    auto options = make_notebook_session(command.notebook, start.config.ceilings);
    KernelHost host(io, std::move(start));
    if (parent.has_value()) {
        BOOST_OUTCOME_TRY(with_context(
            host.end_with(*parent), "the program that started this kernel (JPY_PARENT_PID)"));
    }
    return host.run(std::move(options), std::move(sockets));
}

/// Takes the one reply that is waited for.
class ReplyTaker : public session::ReplySink {
 public:
    explicit ReplyTaker(asio::io_context& io)
        : reply_(std::make_shared<Completion<Result<nlohmann::json>>>(io)) {}
    void deliver(const protocol::Message& message) override {
        reply_->set(message.parse_content());
    }
    asio::awaitable<Result<nlohmann::json>> wait() {
        co_return co_await Completion<Result<nlohmann::json>>::wait(reply_);
    }

 private:
    std::shared_ptr<Completion<Result<nlohmann::json>>> reply_;
};

asio::awaitable<Result<nlohmann::json>> ask(
    asio::io_context& io, session::Service& service, session::SessionOptions options) {
    auto created = co_await service.create(std::move(options));
    if (created.has_error()) {
        co_return std::move(created).error();
    }
    const auto taker = std::make_shared<ReplyTaker>(io);
    created.value()->submit(
        protocol::Message::make(
            protocol::Channel::kControl,
            protocol::make_header("kernel_info_request", "kernelspec", "cellkeep"),
            nlohmann::json::object(),
            nlohmann::json::object()),
        taker);
    co_return co_await taker->wait();
}

}  // namespace

int kernel(const KernelCommand& command) {
    const Status served = serve_kernel(command);
    if (served.has_error()) {
        print_error(served.error());
        return kExitFailed;
    }
    return kExitDone;
}

Result<nlohmann::json> ask_kernel_info(const NotebookOptions& options) {
    asio::io_context io(1);
    BOOST_OUTCOME_TRY(auto config, make_notebook_service(options));
    auto session = make_notebook_session(options, config.ceilings);
    session::Service service(io, std::move(config));
    auto info = run_to_end(io, ask(io, service, std::move(session)));
    service.shutdown();
    io.restart();
    (void)io.poll();
    return info;
}

}  // namespace cellkeep::cli
