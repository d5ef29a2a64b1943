// SPDX-License-Identifier: Apache-2.0
//
// Jupyter connection files (jupyter_client "kernels" documentation; JEP 106 schema). Written 0600
// and atomically. The directory must belong to this process's user. Ports that are read may be
// numbers or numeric strings.
#pragma once

#include "protocol/support/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace cellkeep::protocol {

enum class Transport { kTcp, kIpc };

struct ConnectionInfo {
    Transport transport = Transport::kIpc;
    std::string ip;  // tcp: address; ipc: path prefix
    std::uint16_t shell_port = 0;
    std::uint16_t iopub_port = 0;
    std::uint16_t stdin_port = 0;
    std::uint16_t control_port = 0;
    std::uint16_t hb_port = 0;
    std::string key;
    std::string signature_scheme = "hmac-sha256";
    std::string kernel_name;

    /// The ZeroMQ endpoint of one port: "tcp://ip:port" or "ipc://ip-port".
    std::string endpoint(std::uint16_t port) const;
};

std::string to_json_text(const ConnectionInfo& info);
/// kInvalidArgument names the field that is missing or wrong.
Result<ConnectionInfo> parse_connection_info(std::string_view json);

Status write_connection_file(const std::string& path, const ConnectionInfo& info);

/// What other users may do with a connection file that is still accepted.
enum class OthersMay { kNothing, kRead };
/// kPermissionDenied: other users may read or write the file, which holds the key. With kRead they
/// may read it: some programs that start kernels leave the file readable.
Result<ConnectionInfo> load_connection_file(
    const std::string& path, OthersMay others = OthersMay::kNothing);

}  // namespace cellkeep::protocol
