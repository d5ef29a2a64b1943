// SPDX-License-Identifier: Apache-2.0
//
// The server's way out, for all sessions: what the operator allows at most, the resolver, the
// certificate authority, the secrets. Grants what a session asks for and opens its proxy. Without
// an operator's word nothing is granted. One per process; io_context thread only.
#pragma once

#include "kernel-manager/egress/dial/address.hpp"
#include "kernel-manager/egress/dial/resolver.hpp"
#include "kernel-manager/egress/limits.hpp"
#include "kernel-manager/egress/network_policy.hpp"
#include "kernel-manager/egress/passing/passed_proxy.hpp"
#include "kernel-manager/egress/secrets/secret.hpp"
#include "kernel-manager/egress/session_proxy.hpp"
#include "kernel-manager/egress/tls/tls_authority.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::egress {

/// As parse_allowed_host, and "*:PORT" for every host, with that port.
Result<AllowedHost> parse_ceiling(std::string_view text);
/// "NAME=ADDRESS": what a name means, whatever the host's resolver says.
Result<std::pair<std::string, Address>> parse_fixed_name(std::string_view text);

struct EgressConfig {
    std::vector<AllowedHost> ceiling;      // the most that any session may ask for; empty: nothing
    std::vector<AddressRange> permitted;   // besides public addresses
    std::map<std::string, Address> fixed;  // names with a fixed address
    std::vector<Secret> secrets;
    std::string certificates;  // PEM: trusted besides the host's, by the proxy and in sessions
    std::string directory;     // where bundles for sessions are written; made if missing
    ProxyLimits limits;
    EgressLog log;
    /// That another program in this process has left, which its sessions with secrets trust; null:
    /// one is made.
    std::shared_ptr<TlsAuthority> authority = nullptr;
};

/// Where a session's proxy listens and its certificates are, inside.
inline constexpr std::uint16_t kProxyPort = 3128;
inline constexpr const char* kBundleInside = "/opt/cellkeep/certificates.pem";

/// A file of certificates for one session, unlinked with its owner: what is mounted by then stays.
/// Each session has its own, so that none reads an inode that another could have reached.
class Bundle {
 public:
    explicit Bundle(std::string path) : path_(std::move(path)) {}
    Bundle(Bundle&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    Bundle& operator=(Bundle&& other) noexcept {
        std::swap(path_, other.path_);
        return *this;
    }
    Bundle(const Bundle&) = delete;
    Bundle& operator=(const Bundle&) = delete;
    ~Bundle();
    const std::string& path() const { return path_; }

 private:
    std::string path_;
};

class EgressService {
 public:
    /// kInvalidArgument for certificates that are none.
    static Result<std::shared_ptr<EgressService>> create(
        boost::asio::io_context& io, EgressConfig config);
    EgressService(const EgressService&) = delete;
    EgressService& operator=(const EgressService&) = delete;
    ~EgressService();

    /// What is asked for, with the bindings of its secrets filled in. kPermissionDenied names what
    /// the operator does not allow; kInvalidArgument: too much of it, or a secret's host is not on
    /// the list.
    Result<NetworkPolicy> grant(const NetworkPolicy& asked) const;
    /// A new list for a session that has a proxy. The same failures.
    Status check_allow(const std::vector<AllowedHost>& allow) const;

    /// A session's proxy and the variables that lead its programs there.
    struct Opened {
        std::shared_ptr<SessionProxy> proxy;
        std::vector<std::string> environment;  // "NAME=value"
    };
    /// policy: as granted.
    Result<Opened> open(const std::string& session_id, NetworkPolicy policy, UniqueFd listener);

    // --- the way to another program in the server's process
    /// A session's proxy as the program before has left it, as far as this server's operator allows
    /// it: hosts that are not, and secrets that are not offered as they were, are taken away.
    struct GoingOn {
        std::shared_ptr<SessionProxy> proxy;
        std::vector<std::string> withdrawn;  // by their names, for people
    };
    Result<GoingOn> go_on(const std::string& session_id, PassedProxy passed);
    /// What sessions with secrets trust; nothing without secrets.
    Result<std::optional<TlsAuthority::Passed>> pass_on() const;

    /// The file to show, read-only, at kBundleInside: the certificates that programs in a session
    /// trust; with secrets also this server's own authority's. kSystem.
    Result<Bundle> make_bundle(const std::string& session_id, const NetworkPolicy& policy) const;

    /// Ends what waits for names. Call after the io_context has run for the last time.
    void stop();

 private:
    struct State;
    explicit EgressService(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace cellkeep::egress
