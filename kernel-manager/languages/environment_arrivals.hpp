// SPDX-License-Identifier: Apache-2.0
//
// Named environments that are made while a server runs. The names' directory of the store is
// watched (inotify(7)); what is new in it is verified on a thread of its own and offered. One that
// is removed stays offered: a server holds the files of those that it has.
#pragma once

#include "kernel-manager/environments/environment_store.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/work_thread.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace cellkeep::session {

/// io_context thread only.
class EnvironmentArrivals : public std::enable_shared_from_this<EnvironmentArrivals> {
 public:
    struct Hooks {
        /// The default environment's kernel; nullopt: nothing can be offered yet.
        std::function<std::optional<KernelSpec>()> python;
        /// The kernels that are offered, by name.
        std::function<std::vector<std::string>()> offered;
        /// False: it cannot be offered beside the others.
        std::function<bool(KernelSpec)> offer;
        /// One line about one that is offered now, or cannot be.
        std::function<void(const std::string&)> log;
    };

    /// Begins to watch. kUnavailable if the user has no inotify instance or watch left.
    static Result<std::shared_ptr<EnvironmentArrivals>> create(
        boost::asio::io_context& io, environments::EnvironmentStore store, Hooks hooks);
    EnvironmentArrivals(const EnvironmentArrivals&) = delete;
    EnvironmentArrivals& operator=(const EnvironmentArrivals&) = delete;
    ~EnvironmentArrivals() = default;

    /// Looks for what came before there was a watch, and goes on until stop(). Call it once.
    void begin();
    /// python() gives something now.
    void look_again();
    void stop();

 private:
    struct Found;

    EnvironmentArrivals(
        boost::asio::io_context& io, environments::EnvironmentStore store, Hooks hooks);
    static Found find_new(
        environments::EnvironmentStore& store,
        const KernelSpec& python,
        const std::set<std::string>& known);
    boost::asio::awaitable<void> work();
    boost::asio::awaitable<void> look();

    boost::asio::io_context& io_;
    const std::shared_ptr<environments::EnvironmentStore> store_;
    const Hooks hooks_;
    boost::asio::posix::stream_descriptor changes_;
    std::set<std::string> refused_;  // name and time of making: each is said once
    WorkThread thread_;
    bool again_ = false;
    bool stopped_ = false;
};

}  // namespace cellkeep::session
