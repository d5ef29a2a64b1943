// SPDX-License-Identifier: Apache-2.0
//
// What a TLS client says first, read from the bytes of a tunnel before any of them is passed on:
// which server it wants (RFC 6066, section 3; RFC 8446, section 4.1.2). Strict and bounded: a
// tunnel whose first bytes are not one well-formed ClientHello carries nothing. Pure. Any thread.
#pragma once

#include "kernel-manager/egress/egress_refusal.hpp"
#include "kernel-manager/egress/target.hpp"
#include "protocol/support/result.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::egress {

struct ClientHello {
    std::string server_name;  // as sent; empty: none
    bool encrypted = false;   // carries an encrypted ClientHello: the name inside is hidden
};

/// `bytes`: all that came so far. Nothing while more must come; kProtocol for what is no
/// ClientHello, or a ClientHello that is malformed (a length that disagrees, an extension twice,
/// more than one name); kLimitExceeded if it does not end within bytes_max. It may be cut into any
/// number of records (RFC 8446, section 5.1), none of them empty.
Result<std::optional<ClientHello>> read_client_hello(std::string_view bytes, std::size_t bytes_max);

/// Whether a tunnel to target may carry it: the name must be the target's (for an address: none, as
/// RFC 6066 has it, or the address). kEncryptedClientHello, kNoServerName, kServerNameMismatch.
Allowed<bool> check_client_hello(const ClientHello& hello, const Authority& target);

}  // namespace cellkeep::egress
