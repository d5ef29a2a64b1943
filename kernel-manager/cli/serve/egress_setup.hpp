// SPDX-License-Identifier: Apache-2.0
//
// The flags of `cellkeep serve` about its sessions' network, as the configuration of the egress
// service; and what goes through the egress service, as lines of the log.
#pragma once

#include "kernel-manager/cli/serve/serve_config.hpp"
#include "kernel-manager/egress/egress_service.hpp"
#include "kernel-manager/session/packages/package_index.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <string>

namespace cellkeep::cli {

/// What sessions may install packages from; nothing if the options name none. kInvalidArgument.
Result<std::optional<session::PackageIndex>> plan_package_index(const ServeOptions& options);

/// Reads the files that the options name. Sessions may ask for the index's host, too.
/// kInvalidArgument says which option is wrong; an option that changes nothing without a host that
/// sessions may ask for is wrong without one.
Result<egress::EgressConfig> plan_egress(
    const ServeOptions& options, const std::optional<session::PackageIndex>& index);

/// Null if the operator allows nothing. Says in the log what is allowed. directory: private.
/// authority: what the program before has left of its own; null: nothing. If it is not of the form,
/// a new one is made, and the log has the reason.
Result<std::shared_ptr<egress::EgressService>> make_egress_service(
    boost::asio::io_context& io,
    egress::EgressConfig config,
    const std::string& directory,
    const nlohmann::json& authority);

/// The fields of one line of the log.
nlohmann::json to_fields(const egress::EgressRecord& record);

}  // namespace cellkeep::cli
