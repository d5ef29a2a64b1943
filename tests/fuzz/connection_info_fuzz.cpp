// SPDX-License-Identifier: Apache-2.0
//
// parse_connection_info: an accepted file is complete and survives its own text.
#include "protocol/connection_file.hpp"
#include "protocol/signer.hpp"
#include "tests/fuzz/fuzz_target.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cellkeep::protocol;
    const auto info = parse_connection_info(cellkeep::fuzz::Input(data, size).rest());
    if (info.has_error()) {
        CELLKEEP_CHECK(info.error().code() == cellkeep::ErrorCode::kInvalidArgument);
        return 0;
    }
    const ConnectionInfo& first = info.value();
    CELLKEEP_CHECK(!first.ip.empty());
    for (const std::uint16_t port :
         {first.shell_port,
          first.iopub_port,
          first.stdin_port,
          first.control_port,
          first.hb_port}) {
        CELLKEEP_CHECK(port > 0 && !first.endpoint(port).empty());
    }
    CELLKEEP_CHECK(Signer::create(first.signature_scheme, first.key).has_value());
    const auto second = parse_connection_info(to_json_text(first));
    CELLKEEP_CHECK(second.has_value() && to_json_text(second.value()) == to_json_text(first));
    return 0;
}
