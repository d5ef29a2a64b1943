// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/fronts.hpp"

#include "kernel-manager/cli/log.hpp"
#include "kernel-manager/cli/upgrade/hand_over.hpp"
#include "kernel-manager/cli/version.hpp"
#include "kernel-manager/preview/passed_tokens.hpp"
#include "kernel-manager/session/packages/package_installer.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

namespace {

/// In PassedSessions::fronts.
constexpr const char* kPreviewTokensName = "preview_tokens";
constexpr const char* kSandboxesName = "e2b_sandboxes";
constexpr const char* kShellsName = "swe_rex_shells";

/// Fails if the default kernel is none of this server's.
Result<jupyter::RestConfig> rest_config(const ServePlan& plan, const session::Service& service) {
    const auto language = jupyter::language_of(plan.default_kernel_name, service.languages());
    if (!language) {
        return Error(
            ErrorCode::kInvalidArgument,
            "default-kernel-name: there is no kernel \"" + plan.default_kernel_name + "\"");
    }
    jupyter::RestConfig config;
    config.default_kernel_name = jupyter::kernel_name_of(*language);
    config.base_url = plan.listening.base_url.text();
    config.allowed_envs = plan.allowed_envs;
    config.limits = plan.kernel_limits;
    config.cull = plan.cull;
    config.log = [](const std::string& line) {
        log_event(LogLevel::kInfo, "jupyter", {{"message", line}});
    };
    return config;
}

jupyter::ChannelsConfig channels_config() {
    jupyter::ChannelsConfig config;
    config.log = [](const std::string& line) {
        log_event(LogLevel::kWarning, "channels", {{"message", line}});
    };
    return config;
}

preview::PreviewConfig preview_config(const ServePlan& plan) {
    preview::PreviewConfig config;
    config.tls = plan.listening.tls != nullptr;
    config.log_opened = [](const preview::PortOpened& opened) {
        log_event(
            LogLevel::kInfo,
            "port_opened",
            {{"session", opened.session_id},
             {"port", opened.port},
             {"principal", opened.principal}});
    };
    return config;
}

void log_packages(const session::PackageInstaller::Outcome& outcome) {
    nlohmann::json fields = {
        {"session", outcome.session_id},
        {"asked", outcome.order.python},
        {"allow_source", outcome.order.allow_source},
        {"ms", outcome.took.count()}};
    if (outcome.report != nullptr) {
        nlohmann::json& installed = fields["installed"] = nlohmann::json::array();
        for (const session::InstalledPackage& package : outcome.report->installed) {
            installed.push_back(package.name + "==" + package.version);
        }
    }
    if (outcome.error != nullptr) {
        fields["outcome"] = to_string(outcome.error->code());
    } else {
        fields["outcome"] = outcome.report->succeeded ? "installed" : "failed";
    }
    log_event(LogLevel::kInfo, "packages", fields);
}

}  // namespace

Result<std::unique_ptr<Fronts>> Fronts::create(
    asio::io_context& io,
    const ServePlan& plan,
    session::Service& service,
    const OpenedStore& opened,
    OfferedTools tools) {
    BOOST_OUTCOME_TRY(jupyter::RestConfig rest, rest_config(plan, service));
    std::unique_ptr<Fronts> fronts(
        new Fronts(io, plan, service, opened, std::move(tools), std::move(rest)));
    e2b::FrontOptions e2b_options{plan.egress.ceiling, plan.e2b_snapshots, plan.e2b_debug};
    BOOST_OUTCOME_TRY(
        fronts->e2b_front_,
        e2b::Front::create(io, service, fronts->previews_, std::move(e2b_options)));
    fronts->e2b_front_->add_to(fronts->application_);
    service.add_listener(fronts->e2b_front_.get());
    return fronts;
}

Fronts::Fronts(
    asio::io_context& io,
    const ServePlan& plan,
    session::Service& service,
    const OpenedStore& opened,
    OfferedTools tools,
    jupyter::RestConfig rest)
    : service_(service),
      history_(opened.store.get(), opened.trouble),
      application_(make_application(plan.listening, plan.token, plan.principals)),
      previews_(application_.auth(), preview_config(plan)),
      routes_(
          service,
          history_,
          previews_,
          version_text(),
          tools.approvals,
          session::PackageInstaller::create(plan.package_index, log_packages)),
      rest_api_(io, service, std::move(rest)),
      channels_(io, service, channels_config()),
      mcp_front_(
          io,
          service,
          {version_text(),
           plan.mcp_fixtures ? mcp::WithFixtures::kYes : mcp::WithFixtures::kNo,
           std::move(tools.approvals),
           mcp::OtherApprovers::kApi,
           std::move(tools.broker)}),
      mcp_endpoint_(
          mcp_front_,
          {plan.listening.origins, plan.listening.tls != nullptr, plan.listening.base_url.text()}),
      swerex_front_(service) {
    service.add_listener(&history_);
    service.add_listener(&channels_);
    service.add_listener(&previews_);
    service.add_listener(&swerex_front_);
    routes_.add_to(application_.router());
    rest_api_.add_to(application_);
    channels_.add_to(application_.router());
    mcp_endpoint_.add_to(application_);
    swerex_front_.add_to(application_.router());
}

std::size_t Fronts::passed_bytes() {
    const nlohmann::json names = {
        mcp_front_.names().pass_on(), mcp_endpoint_.pass_on(), rest_api_.documents().pass_on()};
    return nlohmann::json::to_cbor(names).size() + channels_.passed_bytes() +
           nlohmann::json::to_cbor(preview::write_tokens(previews_.tokens().all())).size() +
           e2b_front_->passed_bytes() + swerex_front_.passed_bytes();
}

std::optional<std::string> Fronts::find_newer_part(
    const session::Session& session, int format) const {
    if (format < kHandOverFormatOfSandboxes && previews_.has_tokens(session)) {
        return "it has preview tokens";
    }
    if (format < kHandOverFormatOfSandboxes && e2b_front_->is_sandbox(session)) {
        return "it is a sandbox of E2B's clients";
    }
    if (format < kHandOverFormatOfShells && swerex_front_.has_shells(session)) {
        return "it has a shell of SWE-ReX's clients";
    }
    return std::nullopt;
}

nlohmann::json Fronts::pass_on() {
    return {
        {"mcp_names", mcp_front_.names().pass_on()},
        {"mcp_clients", mcp_endpoint_.pass_on()},
        {"jupyter_documents", rest_api_.documents().pass_on()},
        {"jupyter_terminals", rest_api_.terminals().pass_on()},
        {"jupyter_places", channels_.pass_on()},
        {kPreviewTokensName, preview::write_tokens(previews_.tokens().all())},
        {kSandboxesName, e2b_front_->pass_on()},
        {kShellsName, swerex_front_.pass_on()}};
}

/// An older format has none of it. A session is more than what lets clients in, and than a shell:
/// it goes on without.
void Fronts::go_on_with_doors(const nlohmann::json& passed) {
    const auto complain = [](const Error& why) {
        log_event(LogLevel::kWarning, "session", {{"message", why.message()}});
    };
    if (const auto tokens = passed.find(kPreviewTokensName); tokens != passed.end()) {
        auto read = preview::read_tokens(*tokens);
        if (read.has_error()) {
            complain(read.error());
        } else {
            std::erase_if(read.value(), [this](const auto& one) {
                return service_.find(one.first) == nullptr;
            });
            previews_.tokens().go_on(std::move(read).value());
        }
    }
    if (const auto sandboxes = passed.find(kSandboxesName); sandboxes != passed.end()) {
        if (const Status taken = e2b_front_->go_on(*sandboxes); taken.has_error()) {
            complain(taken.error());
        }
    }
    if (const auto shells = passed.find(kShellsName); shells != passed.end()) {
        if (const Status taken = swerex_front_.go_on(*shells); taken.has_error()) {
            complain(taken.error());
        }
    }
}

Status Fronts::go_on(const nlohmann::json& passed) {
    if (passed.is_null()) {
        return ok();
    }
    try {
        mcp_front_.names().go_on(passed.at("mcp_names"));
        rest_api_.documents().go_on(passed.at("jupyter_documents"));
        if (passed.contains("jupyter_terminals")) {  // an older format has none
            rest_api_.terminals().go_on(passed.at("jupyter_terminals"));
        }
        // An earlier version passes none.
        if (const auto clients = passed.find("mcp_clients"); clients != passed.end()) {
            BOOST_OUTCOME_TRY(mcp_endpoint_.go_on(*clients));
        }
        if (const auto places = passed.find("jupyter_places"); places != passed.end()) {
            channels_.go_on(*places);  // another version may leave none
        }
        go_on_with_doors(passed);
    } catch (const nlohmann::json::exception& failure) {
        return Error(ErrorCode::kProtocol, std::string("passed names: ") + failure.what());
    }
    return ok();
}

void Fronts::announce_shutdown() {
    channels_.announce_shutdown();
    mcp_endpoint_.stop();
}

}  // namespace cellkeep::cli
