// SPDX-License-Identifier: Apache-2.0
//
// The one session of `cellkeep kernel`, served on sockets that are bound already, and what ends it.
// Until there is an image to run from it answers as a kernel that is busy (PreparingFront).
// io_context thread only; that thread must be the main thread (session/service.hpp).
#pragma once

#include "kernel-manager/cli/kernel/parent_watch.hpp"
#include "kernel-manager/cli/preparing/environment_preparation.hpp"
#include "kernel-manager/cli/serve/service_setup.hpp"
#include "kernel-manager/jupyter/zmq/bound_sockets.hpp"
#include "kernel-manager/jupyter/zmq/preparing_front.hpp"
#include "kernel-manager/jupyter/zmq/zmq_session.hpp"
#include "kernel-manager/output/output_observer.hpp"
#include "kernel-manager/service/service.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <sys/types.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::cli {

class KernelHost : private session::SessionListener, private session::OutputObserver {
 public:
    KernelHost(boost::asio::io_context& io, ServiceStart start);
    KernelHost(const KernelHost&) = delete;
    KernelHost& operator=(const KernelHost&) = delete;
    ~KernelHost() override;

    /// Ends with this process. kNotFound if it is gone already.
    Status end_with(pid_t parent);
    /// Serves until something ends it; an error if that was not asked for.
    Status run(session::SessionOptions options, jupyter::BoundSockets sockets);

 private:
    Status on_session_created(const std::shared_ptr<session::Session>& session) override;
    void on_session_closed(const std::string& session_id) override;
    void on_output(const session::OutputEntry& entry) override;

    /// Returns when there is what the session runs from.
    boost::asio::awaitable<Status> prepare(const std::string& language);
    Status begin_preparing(const std::string& language);
    Result<std::unique_ptr<BuildProcess>> begin_build(BuildProcess::Hooks hooks);
    boost::asio::awaitable<void> open(session::SessionOptions options);
    Status serve();
    void await_signal();
    void look_after_death();
    void stop();

    boost::asio::io_context& io_;
    boost::asio::signal_set signals_;
    std::unique_ptr<ParentWatch> parent_;
    std::optional<jupyter::BoundSockets> sockets_;  // until front_ serves them
    const std::function<Result<session::KernelCatalog>()> load_;
    const std::vector<std::string> build_arguments_;
    const std::optional<session::KernelCatalog> of_host_;
    std::shared_ptr<EnvironmentPreparation> preparation_;
    std::unique_ptr<BuildProcess> build_;  // of the next start's image, while this one runs
    std::shared_ptr<Completion<Status>> prepared_;
    std::shared_ptr<jupyter::PreparingFront> preface_;  // until front_ serves the sockets
    std::deque<jupyter::HeldRequest> held_;
    std::shared_ptr<session::Session> session_;
    std::shared_ptr<jupyter::ZmqSession> front_;
    std::optional<Error> failure_;
    bool stopping_ = false;
    bool ended_ = false;
    session::Service service_;  // ends first: its sessions tell us of their end
};

}  // namespace cellkeep::cli
