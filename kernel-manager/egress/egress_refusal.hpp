// SPDX-License-Identifier: Apache-2.0
//
// How the proxy refuses: a stable code for programs, a sentence for people, one hint that can be
// acted on. Never: a secret, or more of what the guest sent than its target. Any thread.
#pragma once

#include "kernel-manager/egress/target.hpp"

#include <boost/outcome/basic_result.hpp>
#include <boost/outcome/policy/terminate.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::egress {

/// Why something was not passed on, or not to its end. The codes are part of the interface.
enum class Reason {
    kAllowed,
    // what was asked
    kMalformed,
    kHeadTooLarge,
    kHeadTimeout,
    kMethodRefused,
    kBadTarget,
    kNotAllowed,
    kHostMismatch,
    // where it goes
    kResolveFailed,
    kResolveTimeout,
    kResolverBusy,
    kAddressRefused,
    kConnectFailed,
    kConnectTimeout,
    kUpstreamTls,
    kUpstreamProtocol,
    kUpstreamTimeout,
    kUpstreamClosed,
    // what is in a tunnel
    kNotTls,
    kClientHelloTooLarge,
    kNoServerName,
    kServerNameMismatch,
    kEncryptedClientHello,
    kClientTls,
    // secrets
    kSecretScope,
    kSecretScheme,
    // limits
    kTooManyConnections,
    kTooManyRequests,
    kBytesUpLimit,
    kBytesDownLimit,
    kIdleTimeout,
    // the session
    kPolicyChanged,
    kSessionEnded,
    kClientClosed,
    kInternal,
};

/// "not_allowed": what X-Cellkeep-Deny and the log say.
std::string_view code_of(Reason reason);
/// The HTTP status that a client is answered with.
int status_of(Reason reason);
std::string_view title_of(Reason reason);
/// One sentence for an agent, or empty.
std::string_view hint_of(Reason reason);

/// With constructors, because g++ 12 miscompiles coroutines with temporaries of aggregates.
struct EgressRefusal {
    EgressRefusal() = default;
    EgressRefusal(Reason why, std::string sentence) : reason(why), detail(std::move(sentence)) {}
    Reason reason = Reason::kInternal;
    std::string detail;  // a sentence
};

template <typename T>
using Allowed = BOOST_OUTCOME_V2_NAMESPACE::
    basic_result<T, EgressRefusal, BOOST_OUTCOME_V2_NAMESPACE::policy::terminate>;

enum class Afterwards { kKeepAlive, kClose };

/// A whole HTTP/1.1 answer: status, X-Cellkeep-Deny, a problem (RFC 9457) as JSON with `code`,
/// `host`, `port` (of target, if it is known) and `hint`. without_body: for HEAD.
std::string to_http(
    const EgressRefusal& refusal, const Authority& target, Afterwards after, bool without_body);

}  // namespace cellkeep::egress
