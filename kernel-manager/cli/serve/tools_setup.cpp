// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/tools_setup.hpp"

#include "kernel-manager/cli/log.hpp"
#include "kernel-manager/egress/tls/tls_authority.hpp"
#include "kernel-manager/tools/connection/program_connection.hpp"
#include "kernel-manager/tools/connection/url_connection.hpp"

#include <map>
#include <utility>
#include <variant>

namespace cellkeep::cli {

namespace {

using Opened = Result<std::unique_ptr<tools::ServerConnection>>;

Opened connect(
    const tools::ServerEntry& entry, const tools::UrlParts& shared, tools::ConnectionParts parts) {
    if (const auto* url = std::get_if<tools::UrlPlace>(&entry.place)) {
        return std::unique_ptr<tools::ServerConnection>(
            std::make_unique<tools::UrlConnection>(*url, shared, std::move(parts)));
    }
    BOOST_OUTCOME_TRY(
        auto opened,
        tools::ProgramConnection::open(
            std::get<tools::ProgramPlace>(entry.place), std::move(parts)));
    return std::unique_ptr<tools::ServerConnection>(std::move(opened));
}

}  // namespace

Result<std::unique_ptr<ToolsSetup>> ToolsSetup::create(
    boost::asio::io_context& io,
    std::vector<tools::ServerEntry> entries,
    const std::string& certificates,
    const std::string& directory) {
    auto setup = std::unique_ptr<ToolsSetup>(new ToolsSetup());
    if (entries.empty()) {
        return setup;
    }
    setup->resolver_ =
        std::make_shared<egress::SystemResolver>(io, std::map<std::string, egress::Address>());
    tools::UrlParts shared{setup->resolver_, nullptr};
    BOOST_OUTCOME_TRY(shared.tls, egress::make_client_context(certificates));
    setup->approvals_ = std::make_shared<governance::Approvals>(io);
    tools::ToolBroker::Config config;
    config.approvals = setup->approvals_;
    config.entries = std::move(entries);
    config.connect = [shared](const tools::ServerEntry& entry, tools::ConnectionParts parts) {
        return connect(entry, shared, std::move(parts));
    };
    config.reviews_path = directory + "/reviewed-tools.json";
    config.log = [](std::string_view event, const nlohmann::json& fields) {
        log_event(LogLevel::kInfo, event, fields);
    };
    BOOST_OUTCOME_TRY(setup->broker_, tools::ToolBroker::create(io, std::move(config)));
    return setup;
}

void ToolsSetup::start() {
    if (broker_) {
        broker_->start();
    }
}

void ToolsSetup::stop() {
    if (broker_) {
        broker_->stop();
        resolver_->stop();
    }
}

}  // namespace cellkeep::cli
