// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/session_factory.hpp"

#include "kernel-manager/execution/file_writing.hpp"
#include "kernel-manager/languages/named_environments.hpp"
#include "kernel-manager/service/admission.hpp"
#include "kernel-manager/session/network/network_access.hpp"
#include "kernel-manager/session/packages/package_index.hpp"
#include "kernel-manager/session/passing/passed_network.hpp"
#include "kernel-manager/session/passing/passed_setup.hpp"
#include "kernel-manager/session/sandboxed_session.hpp"
#include "protocol/support/syscall.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <utility>

namespace cellkeep::session {

sandbox::Policy make_policy(
    const SessionLimits& asked,
    const SessionLanguages& languages,
    const ServiceConfig& config,
    std::uint32_t slot) {
    sandbox::Policy policy;
    policy.read_only = languages.read_only;
    policy.limits.cpu_cores = asked.cpu_cores;
    policy.limits.memory_bytes = asked.memory_mb << 20U;
    policy.limits.workspace_bytes = asked.disk_mb << 20U;
    policy.limits.processes = asked.processes;
    policy.host_uid = config.host_id_base + slot;
    policy.host_gid = config.host_id_base + slot;
    policy.images = languages.images;
    policy.allow_degraded = config.allow_degraded;
    return policy;
}

namespace {

/// Programs in a session of Python install from the operator's index, into its own directory.
void lead_to_packages(const std::optional<PackageIndex>& index, SessionSetup& setup) {
    if (!index || setup.spec.language != "python") {
        return;
    }
    const std::vector<std::string> variables = package_variables(*index);
    setup.network_env.insert(setup.network_env.end(), variables.begin(), variables.end());
    add_package_programs(setup.spec.env);
}

/// On that thread.
WatchRation::Close close_on(const std::shared_ptr<WorkThread>& thread) {
    return [thread](UniqueFd fd) {
        thread->run([kept = std::make_shared<UniqueFd>(std::move(fd))] {
            kept->reset();
            return WorkThread::Slice::kDone;
        });
    };
}

}  // namespace

std::shared_ptr<SessionFactory> SessionFactory::create(
    boost::asio::io_context& io,
    std::shared_ptr<const ServiceConfig> config,
    MakeSandbox make_sandbox,
    MakeBranch make_branch) {
    return std::shared_ptr<SessionFactory>(
        new SessionFactory(io, std::move(config), std::move(make_sandbox), std::move(make_branch)));
}

SessionFactory::SessionFactory(
    boost::asio::io_context& io,
    std::shared_ptr<const ServiceConfig> config,
    MakeSandbox make_sandbox,
    MakeBranch make_branch)
    : io_(io),
      config_(std::move(config)),
      make_sandbox_(std::move(make_sandbox)),
      make_branch_(std::move(make_branch)),
      watch_ration_(WatchRation::create(close_on(work_thread_))),
      blob_space_(std::make_shared<checkpoint::BlobSpace>(config_->checkpoint_directory)) {
    read_catalog();
}

void SessionFactory::read_catalog() {
    languages_.clear();
    for (const std::string& language : config_->catalog.languages()) {
        languages_.emplace(
            language, combine_languages(config_->catalog, *config_->catalog.find(language)));
    }
}

boost::asio::awaitable<Result<InputsDirectory::Checked>> SessionFactory::check_inputs(
    std::vector<InputFile> files) {
    const auto self = shared_from_this();
    if (!has_references(files)) {
        co_return InputsDirectory::Checked();
    }
    if (!config_->inputs) {
        co_return no_inputs_directory().with_context("files");
    }
    co_return co_await InputsDirectory::check(config_->inputs, io_, inputs_thread_, files);
}

boost::asio::awaitable<Result<std::shared_ptr<ManagedSession>>> SessionFactory::make(Order order) {
    const auto self = shared_from_this();
    BOOST_OUTCOME_CO_TRY(const auto id, random_hex(12));
    SessionSetup setup;
    setup.id = "ses_" + id;
    BOOST_OUTCOME_CO_TRY(const SessionLanguages languages, choose_languages(order, setup.spec));
    setup.catalog = languages.catalog;
    BOOST_OUTCOME_CO_TRY(
        auto network,
        NetworkAccess::prepare(config_->egress_service, setup.id, order.options.network));
    sandbox::Policy policy = policy_for(order, languages, setup);
    network.add_to(policy);
    // g++ 12 destroys twice what a conditional co_await gives.
    Result<sandbox::Sandbox> made = Error(ErrorCode::kUnavailable, "there are no branches");
    if (!order.seed) {
        made = co_await make_sandbox_(offered_by(setup.spec), std::move(policy));
    } else if (make_branch_) {
        made = co_await make_branch_(std::move(policy), std::move(order.seed->launcher));
    }
    if (made.has_error()) {
        co_return std::move(made).error().with_context("create session");
    }
    if (stopped_) {
        co_return refuse_at_shutdown();
    }
    sandbox::Sandbox sandbox = std::move(made).value();
    BOOST_OUTCOME_CO_TRY(InputsDirectory::check_mounted(
        order.options.files, order.checked_inputs, sandbox::Workspace(sandbox)));
    BOOST_OUTCOME_CO_TRY(setup.proxy, network.open(sandbox, setup.network_env));
    if (setup.proxy) {
        lead_to_packages(config_->package_index, setup);
    }
    setup.spec.env.insert(setup.spec.env.end(), setup.network_env.begin(), setup.network_env.end());
    setup.kernel_id = std::move(order.kernel_id);
    setup.set_options(std::move(order.options));
    setup.spare = order.spare;
    setup.on_end_requested = [on_end = std::move(order.on_end_requested),
                              session_id = setup.id](Death reason) { on_end(session_id, reason); };
    connect(setup);
    co_return SandboxedSession::create(io_, std::move(setup), std::move(sandbox));
}

Result<std::shared_ptr<ManagedSession>> SessionFactory::go_on(
    PassedSession passed,
    const SharedAgain& shared,
    FamiliesAgain& families,
    std::function<void(const std::string& session_id, Death)> on_end_requested) {
    sandbox::Sandbox sandbox = take_sandbox(passed, shared.find_zygote(passed.zygote));
    BOOST_OUTCOME_TRY(SessionSetup setup, read_setup(passed, shared));
    BOOST_OUTCOME_TRY(setup.family, families.join(passed.id));
    setup.on_end_requested = [on_end = std::move(on_end_requested),
                              session_id = setup.id](Death reason) { on_end(session_id, reason); };
    connect(setup);
    read_network(passed, setup);
    const auto session = SandboxedSession::create(io_, std::move(setup), std::move(sandbox));
    BOOST_OUTCOME_TRY(session->go_on(std::move(passed)));
    return std::static_pointer_cast<ManagedSession>(session);
}

/// A branch has what its parent has.
Result<SessionLanguages> SessionFactory::choose_languages(
    const Order& order, KernelSpec& spec) const {
    if (order.seed) {
        spec = order.seed->spec;
        const auto& catalog = order.seed->catalog;
        SessionLanguages languages = combine_languages(catalog ? *catalog : KernelCatalog(), spec);
        languages.catalog = catalog;
        return languages;
    }
    // Admission::check() has looked, perhaps into a former catalog.
    BOOST_OUTCOME_TRY(
        const KernelSpec* const chosen,
        choose_kernel(config_->catalog, order.options.language, order.options.environment));
    spec = *chosen;
    return languages_of(offered_by(spec));
}

sandbox::Policy SessionFactory::policy_for(
    Order& order, const SessionLanguages& languages, SessionSetup& setup) const {
    const std::uint32_t slot = order.seed ? order.seed->parent->slot() : order.slot;
    sandbox::Policy policy = make_policy(order.options.limits, languages, *config_, slot);
    policy.branches = order.options.branches;
    if (order.seed) {
        // From here on its parent's sandbox stays.
        setup.family = std::make_shared<FamilyMember>(order.seed->parent);
        setup.come = order.seed->come;
        setup.branch = order.branch;
        return policy;
    }
    setup.family = std::make_shared<FamilyMember>(order.slot);
    if (config_->inputs) {
        policy.inputs = config_->inputs->mounts_of(order.options.files);
        for (const InputFile& file : order.options.files) {
            if (!file.from.empty()) {
                setup.mounted.emplace(file.path, file.from);
            }
        }
    }
    return policy;
}

void SessionFactory::connect(SessionSetup& setup) const {
    setup.egress_service = config_->egress_service;
    setup.operator_tools = config_->operator_tools;
    setup.start_timeout = config_->start_timeout;
    setup.freeze_after = config_->freeze_after;
    setup.log_frozen = [log = config_->log_frozen, session_id = setup.id](bool frozen) {
        if (log) {
            log(session_id, frozen);
        }
    };
    setup.log = [log = config_->log](const std::string& line) {
        if (log) {
            log(line);
        }
    };
    setup.log_limit = [log = config_->log_limit, session_id = setup.id](
                          const std::string& execution_id, const LimitHit& hit) {
        if (log) {
            log(session_id, execution_id, hit);
        }
    };
    setup.work_thread = work_thread_;
    setup.cgroup_thread = cgroup_thread_;
    setup.watch_ration = watch_ration_;
    setup.blob_space = blob_space_;
    setup.inputs_thread = inputs_thread_;
    setup.inputs = config_->inputs;
}

}  // namespace cellkeep::session
