// SPDX-License-Identifier: Apache-2.0
//
// Makes a session of what a client asked for: the sandbox's policy, its network, its mounted
// inputs, the sandbox, and the session in it, which has not started. Owns the threads that read and
// write files for all sessions. io_context thread only.
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/execution/inputs_directory.hpp"
#include "kernel-manager/languages/session_languages.hpp"
#include "kernel-manager/service/service_config.hpp"
#include "kernel-manager/session/checkpoints/branch_seed.hpp"
#include "kernel-manager/session/managed_session.hpp"
#include "kernel-manager/session/passing/families_again.hpp"
#include "kernel-manager/session/passing/passed_sessions.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "kernel-manager/session/session_setup.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/work_thread.hpp"
#include "sandbox/policy/policy.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/server/branch_launcher.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::session {

/// What the sandbox of a session is asked for, except for network and inputs. slot: the session's
/// number.
sandbox::Policy make_policy(
    const SessionLimits& asked,
    const SessionLanguages& languages,
    const ServiceConfig& config,
    std::uint32_t slot);

class SessionFactory : public std::enable_shared_from_this<SessionFactory> {
 public:
    using MakeSandbox = std::function<boost::asio::awaitable<Result<sandbox::Sandbox>>(
        std::string language, sandbox::Policy)>;
    using MakeBranch = std::function<boost::asio::awaitable<Result<sandbox::Sandbox>>(
        sandbox::Policy, std::shared_ptr<sandbox::BranchLauncher>)>;
    /// One session. It has been admitted.
    struct Order {
        SessionOptions options;
        /// By check_inputs(), of options.files.
        InputsDirectory::Checked checked_inputs;
        std::uint32_t slot = 0;
        std::string kernel_id;
        /// Made in advance, without a client.
        bool spare = false;
        /// Both, or none: a branch of another session.
        std::optional<BranchSeed> seed;
        std::optional<BranchInfo> branch;
        /// The session asks for its own end, from inside its own code: act later.
        std::function<void(const std::string& session_id, Death)> on_end_requested;
    };

    static std::shared_ptr<SessionFactory> create(
        boost::asio::io_context& io,
        std::shared_ptr<const ServiceConfig> config,
        MakeSandbox make_sandbox,
        MakeBranch make_branch = nullptr);
    SessionFactory(const SessionFactory&) = delete;
    SessionFactory& operator=(const SessionFactory&) = delete;
    ~SessionFactory() = default;

    /// The configuration's catalog is another one than before.
    void read_catalog();
    /// What a main language's sessions can run, and what their sandboxes show for it. The language
    /// is offered.
    const SessionLanguages& languages_of(const std::string& language) const {
        return languages_.at(language);
    }
    /// Whether the operator's files of the list are there and have their digests; without such
    /// files nothing is read. kInvalidArgument names the field.
    boost::asio::awaitable<Result<InputsDirectory::Checked>> check_inputs(
        std::vector<InputFile> files);
    /// Errors are those of the sandbox, the network and the inputs; kUnavailable after stop().
    boost::asio::awaitable<Result<std::shared_ptr<ManagedSession>>> make(Order order);
    /// One that another program has left, and its interpreter; its sandbox ends if that fails.
    /// kProtocol: not of the form. on_end_requested: as in Order. families: its place is in one.
    Result<std::shared_ptr<ManagedSession>> go_on(
        PassedSession passed,
        const SharedAgain& shared,
        FamiliesAgain& families,
        std::function<void(const std::string& session_id, Death)> on_end_requested);
    /// The server ends: what is being made is given up.
    void stop() { stopped_ = true; }

 private:
    SessionFactory(
        boost::asio::io_context& io,
        std::shared_ptr<const ServiceConfig> config,
        MakeSandbox make_sandbox,
        MakeBranch make_branch);
    Result<SessionLanguages> choose_languages(const Order& order, KernelSpec& spec) const;
    sandbox::Policy policy_for(
        Order& order, const SessionLanguages& languages, SessionSetup& setup) const;
    void connect(SessionSetup& setup) const;

    boost::asio::io_context& io_;
    const std::shared_ptr<const ServiceConfig> config_;
    const MakeSandbox make_sandbox_;
    const MakeBranch make_branch_;
    std::map<std::string, SessionLanguages> languages_;  // by the sessions' main language
    std::shared_ptr<WorkThread> work_thread_ = std::make_shared<WorkThread>();
    std::shared_ptr<WorkThread> cgroup_thread_ = std::make_shared<WorkThread>();
    const std::shared_ptr<WatchRation> watch_ration_;
    const std::shared_ptr<checkpoint::BlobSpace> blob_space_;
    std::shared_ptr<WorkThread> inputs_thread_ = std::make_shared<WorkThread>();
    bool stopped_ = false;
};

}  // namespace cellkeep::session
