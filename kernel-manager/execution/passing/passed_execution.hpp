// SPDX-License-Identifier: Apache-2.0
//
// An execution that has finished, runs or waits, written down for another program in the
// server's process and read again.
#pragma once

#include "kernel-manager/execution/running_execution.hpp"

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace cellkeep::session {

/// Texts in it are the bytes that they are: no JSON text can be made of it, CBOR can. Of its
/// events the newest, up to so many bytes. Precondition: it has finished, or can pass.
nlohmann::json write_execution(const Execution& execution, std::size_t event_bytes_max);

/// access: the operator's tools of one that has not finished. Throws nlohmann::json::exception for
/// what is not of that form.
std::shared_ptr<Execution> read_execution(
    boost::asio::io_context& io,
    const nlohmann::json& text,
    const std::function<OperatorAccess(const std::string& id)>& access);

}  // namespace cellkeep::session
