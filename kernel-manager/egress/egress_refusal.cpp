// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/egress_refusal.hpp"

#include "protocol/json.hpp"

#include <nlohmann/json.hpp>

#include <array>

namespace cellkeep::egress {

namespace {

struct Row {
    Reason reason;
    std::string_view code;
    int status;
    std::string_view title;
    std::string_view hint;
};

constexpr std::string_view kNoHint;
constexpr std::string_view kWhatIsAllowed =
    "Use only hosts of this session's network.allow, or have it changed from outside.";
constexpr std::string_view kSpelling =
    "Name the host exactly as it is in network.allow, and the port.";
constexpr std::string_view kLater = "Wait and try again.";
constexpr std::string_view kTlsOnly =
    "Tunnels carry TLS with the target's name only; http:// URLs are asked for without CONNECT.";
constexpr std::string_view kSecretBounds =
    "The secret may be used with these paths and methods only; ask the operator.";

constexpr std::array kRows = {
    Row{Reason::kAllowed, "allowed", 200, "Allowed", kNoHint},
    Row{Reason::kMalformed, "malformed", 400, "The request is malformed", kNoHint},
    Row{Reason::kHeadTooLarge, "head_too_large", 431, "The request head is too large", kNoHint},
    Row{Reason::kHeadTimeout, "head_timeout", 408, "The request did not arrive in time", kNoHint},
    Row{Reason::kMethodRefused, "method_refused", 405, "This method is not passed on", kNoHint},
    Row{Reason::kBadTarget, "bad_target", 400, "The target is refused", kSpelling},
    Row{Reason::kNotAllowed, "not_allowed", 403, "The host is not allowed", kWhatIsAllowed},
    Row{Reason::kHostMismatch, "host_mismatch", 421, "Host is not the target", kSpelling},
    Row{Reason::kResolveFailed, "resolve_failed", 502, "The name has no address", kNoHint},
    Row{Reason::kResolveTimeout,
        "resolve_timeout",
        504,
        "Looking up the name took too long",
        kLater},
    Row{Reason::kResolverBusy, "resolver_busy", 503, "Too many names are looked up", kLater},
    Row{Reason::kAddressRefused,
        "address_refused",
        403,
        "The host's addresses are refused",
        "Only public addresses are reached, and those that the operator permits."},
    Row{Reason::kConnectFailed, "connect_failed", 502, "The host cannot be reached", kNoHint},
    Row{Reason::kConnectTimeout, "connect_timeout", 504, "The host did not answer", kLater},
    Row{Reason::kUpstreamTls,
        "upstream_tls",
        502,
        "The host's certificate is not accepted",
        kNoHint},
    Row{Reason::kUpstreamProtocol, "upstream_protocol", 502, "The host answered nonsense", kNoHint},
    Row{Reason::kUpstreamTimeout,
        "upstream_timeout",
        504,
        "The host did not answer in time",
        kLater},
    Row{Reason::kUpstreamClosed, "upstream_closed", 502, "The host closed the connection", kLater},
    Row{Reason::kNotTls, "not_tls", 403, "The tunnel does not carry TLS", kTlsOnly},
    Row{Reason::kClientHelloTooLarge,
        "client_hello_too_large",
        431,
        "The ClientHello is too long",
        kNoHint},
    Row{Reason::kNoServerName, "no_server_name", 403, "TLS without a server name", kTlsOnly},
    Row{Reason::kServerNameMismatch,
        "server_name_mismatch",
        421,
        "TLS for another server name",
        kTlsOnly},
    Row{Reason::kEncryptedClientHello,
        "encrypted_client_hello",
        403,
        "TLS with a hidden name",
        "Switch encrypted ClientHello off."},
    Row{Reason::kClientTls,
        "client_tls",
        502,
        "The TLS handshake failed",
        "Trust the certificates in SSL_CERT_FILE, and speak HTTP/1.1."},
    Row{Reason::kSecretScope, "secret_scope", 403, "Outside what the secret is for", kSecretBounds},
    Row{Reason::kSecretScheme, "secret_scheme", 403, "The secret is for https", "Use https."},
    Row{Reason::kTooManyConnections,
        "too_many_connections",
        503,
        "Too many connections",
        "Close connections, or use fewer at a time."},
    Row{Reason::kTooManyRequests, "too_many_requests", 429, "Too many requests", kLater},
    Row{Reason::kBytesUpLimit,
        "bytes_up_limit",
        403,
        "The session may send no more",
        "A new session has a fresh budget."},
    Row{Reason::kBytesDownLimit,
        "bytes_down_limit",
        403,
        "The session may receive no more",
        "A new session has a fresh budget."},
    Row{Reason::kIdleTimeout, "idle_timeout", 408, "Nothing came for too long", kNoHint},
    Row{Reason::kPolicyChanged,
        "policy_changed",
        403,
        "The host is no longer allowed",
        kWhatIsAllowed},
    Row{Reason::kSessionEnded, "session_ended", 503, "The session has ended", kNoHint},
    Row{Reason::kClientClosed, "client_closed", 400, "The client went away", kNoHint},
    Row{Reason::kInternal, "internal", 500, "The proxy failed", kNoHint},
};

const Row& row_of(Reason reason) {
    for (const Row& row : kRows) {
        if (row.reason == reason) {
            return row;
        }
    }
    return kRows.back();
}

std::string_view phrase_of(int status) {
    switch (status) {
        case 400:
            return "Bad Request";
        case 403:
            return "Forbidden";
        case 405:
            return "Method Not Allowed";
        case 408:
            return "Request Timeout";
        case 421:
            return "Misdirected Request";
        case 429:
            return "Too Many Requests";
        case 431:
            return "Request Header Fields Too Large";
        case 500:
            return "Internal Server Error";
        case 501:
            return "Not Implemented";
        case 502:
            return "Bad Gateway";
        case 503:
            return "Service Unavailable";
        case 504:
            return "Gateway Timeout";
        default:
            return "Refused";
    }
}

}  // namespace

std::string_view code_of(Reason reason) {
    return row_of(reason).code;
}

int status_of(Reason reason) {
    return row_of(reason).status;
}

std::string_view title_of(Reason reason) {
    return row_of(reason).title;
}

std::string_view hint_of(Reason reason) {
    return row_of(reason).hint;
}

std::string to_http(
    const EgressRefusal& refusal, const Authority& target, Afterwards after, bool without_body) {
    const Row& row = row_of(refusal.reason);
    nlohmann::json problem = {
        {"type", "/problems/egress/" + std::string(row.code)},
        {"title", row.title},
        {"status", row.status},
        {"detail", refusal.detail},
        {"code", row.code},
        {"hint", row.hint},
    };
    if (!target.host.text.empty()) {
        problem["host"] = target.host.text;
        problem["port"] = target.port;
    }
    const std::string body = protocol::dump_json(problem) + "\n";
    std::string answer = "HTTP/1.1 " + std::to_string(row.status) + " " +
                         std::string(phrase_of(row.status)) +
                         "\r\nContent-Type: application/problem+json\r\nContent-Length: " +
                         std::to_string(body.size()) + "\r\nCache-Control: no-store" +
                         "\r\nX-Cellkeep-Deny: " + std::string(row.code) + "\r\n";
    if (row.status == 429 || row.status == 503) {
        answer += "Retry-After: 5\r\n";
    }
    if (row.status == 405) {
        answer += "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, CONNECT\r\n";
    }
    answer += after == Afterwards::kClose ? "Connection: close\r\n\r\n"
                                          : "Connection: keep-alive\r\n\r\n";
    return without_body ? answer : answer + body;
}

}  // namespace cellkeep::egress
