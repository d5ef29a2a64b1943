// SPDX-License-Identifier: Apache-2.0
//
// Gets a program that serves already what its sessions run from: has the image made beside it, and
// loads it when it is there. io_context thread only; it loads on a thread of its own.
#pragma once

#include "kernel-manager/cli/preparing/build_process.hpp"
#include "kernel-manager/languages/kernel_catalog.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/work_thread.hpp"

#include <boost/asio/io_context.hpp>

#include <functional>
#include <memory>
#include <string>

namespace cellkeep::cli {

/// How often a build is begun: again if a signal ended the one before, or if the host changed so
/// much meanwhile that another image is needed.
inline constexpr int kBuildsMost = 3;

class EnvironmentPreparation : public std::enable_shared_from_this<EnvironmentPreparation> {
 public:
    struct Hooks {
        std::function<Result<std::unique_ptr<BuildProcess>>(BuildProcess::Hooks)> start;
        /// Runs on another thread. kNotFound: there is no image, after all.
        std::function<Result<session::KernelCatalog>()> load;
        /// How far it is: lines for people. The last one before a failure says why it failed.
        std::function<void(const std::string&)> on_line;
        /// Once.
        std::function<void(Result<session::KernelCatalog>)> on_end;
    };

    static std::shared_ptr<EnvironmentPreparation> create(boost::asio::io_context& io, Hooks hooks);
    EnvironmentPreparation(const EnvironmentPreparation&) = delete;
    EnvironmentPreparation& operator=(const EnvironmentPreparation&) = delete;
    ~EnvironmentPreparation() = default;

    void begin();
    /// No hook is called afterwards. A build that was begun goes on.
    void stop();

 private:
    EnvironmentPreparation(boost::asio::io_context& io, Hooks hooks)
        : io_(io), hooks_(std::move(hooks)) {}
    void on_built(const Status& built);
    void load();
    void on_loaded(Result<session::KernelCatalog> loaded);
    void end(Result<session::KernelCatalog> outcome);

    boost::asio::io_context& io_;
    Hooks hooks_;
    std::unique_ptr<BuildProcess> process_;
    std::string last_line_;
    int builds_ = 0;
    bool ended_ = false;
    WorkThread thread_;  // ends first
};

}  // namespace cellkeep::cli
