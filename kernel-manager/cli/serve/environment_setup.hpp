// SPDX-License-Identifier: Apache-2.0
//
// Named environments that are made while `cellkeep serve` runs.
#pragma once

#include "kernel-manager/languages/environment_arrivals.hpp"
#include "kernel-manager/service/service.hpp"

#include <boost/asio/io_context.hpp>

#include <memory>

namespace cellkeep::cli {

/// Begins to watch the user's store, which it makes if it is missing. Null if it cannot be watched:
/// the log says why, and the server has the environments of its start. service outlives it.
std::shared_ptr<session::EnvironmentArrivals> watch_environments(
    boost::asio::io_context& io, session::Service& service);

}  // namespace cellkeep::cli
