// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/passing/passed_proxy.hpp"

#include "kernel-manager/egress/dial/address.hpp"
#include "kernel-manager/egress/egress_service.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/passed_time.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace cellkeep::egress {

using nlohmann::json;
using std::chrono::steady_clock;

namespace {

/// As many as serve; what is refused at once ends before anything passes.
constexpr std::size_t kConnectionsMax = limits::kEgressConnectionsMax;
constexpr std::size_t kTextBytesMax = 256;

/// What is thrown here is caught in read_proxy().
[[noreturn]] void refuse_proxy(const char* what) {
    throw json::other_error::create(505, what, nullptr);
}

template <typename T>
T of(Result<T> read, const char* what) {
    if (read.has_error()) {
        refuse_proxy(what);
    }
    return std::move(read).value();
}

int option_of(const UniqueFd& fd, int option) {
    int value = -1;
    socklen_t bytes = sizeof value;
    return ::getsockopt(fd.get(), SOL_SOCKET, option, &value, &bytes) == 0 ? value : -1;
}

bool is_stream(const UniqueFd& fd) {
    const int domain = option_of(fd, SO_DOMAIN);
    return (domain == AF_INET || domain == AF_INET6) && option_of(fd, SO_TYPE) == SOCK_STREAM;
}

const json& list_at(const json& text, const char* name, std::size_t most) {
    const json& list = text.at(name);
    if (!list.is_array() || list.size() > most) {
        refuse_proxy(name);
    }
    return list;
}

std::uint64_t count_at(const json& text, const char* name) {
    const json& count = text.at(name);
    if (!count.is_number_unsigned()) {
        refuse_proxy(name);
    }
    return count.get<std::uint64_t>();
}

std::string text_at(const json& text, const char* name, std::size_t bytes_max = kTextBytesMax) {
    auto found = text.at(name).get<std::string>();
    if (found.size() > bytes_max) {
        refuse_proxy(name);
    }
    return found;
}

json write_moments(const PassedProxy::Moments& moments) {
    json all = json::array();
    for (const auto& moment : moments) {
        all.push_back(to_ticks(moment));
    }
    return all;
}

steady_clock::time_point read_moment(const json& text, steady_clock::time_point now) {
    if (!text.is_number_integer()) {
        refuse_proxy("a moment that is none");
    }
    const auto moment = from_ticks<steady_clock::time_point>(text.get<std::int64_t>());
    if (moment > now) {
        refuse_proxy("a moment that is to come");
    }
    return moment;
}

PassedProxy::Moments read_moments(
    const json& text, const char* name, std::size_t most, steady_clock::time_point now) {
    PassedProxy::Moments moments;
    for (const json& one : list_at(text, name, most)) {
        moments.push_back(read_moment(one, now));
    }
    if (!std::is_sorted(moments.begin(), moments.end())) {
        refuse_proxy("moments in another order");
    }
    return moments;
}

json write_policy(const NetworkPolicy& policy) {
    json allow = json::array();
    for (const AllowedHost& entry : policy.allow) {
        allow.push_back(to_string(entry));
    }
    json secrets = json::array();
    for (const SecretBinding& binding : policy.secrets) {
        secrets.push_back(
            {{"name", binding.name},
             {"variable", binding.variable},
             {"host", to_string(binding.host)},
             {"header", binding.header}});
    }
    return {{"allow", std::move(allow)}, {"secrets", std::move(secrets)}};
}

NetworkPolicy read_policy(const json& text) {
    NetworkPolicy policy;
    policy.mode = NetworkMode::kAllowlist;
    for (const json& entry : list_at(text, "allow", limits::kEgressAllowedHostsMax)) {
        policy.allow.push_back(of(parse_ceiling(entry.get<std::string>()), "allow"));
    }
    for (const json& one : list_at(text, "secrets", limits::kEgressSecretsMax)) {
        SecretBinding binding;
        binding.name = text_at(one, "name");
        binding.variable = text_at(one, "variable");
        binding.host = of(parse_allowed_host(text_at(one, "host")), "host");
        binding.header = text_at(one, "header");
        if (binding.host.subdomains) {
            refuse_proxy("a secret for many hosts");
        }
        policy.secrets.push_back(std::move(binding));
    }
    return policy;
}

json write_way(const PassedTunnel::Way& way) {
    return {{"held", way.held}, {"ended", way.ended}};
}

PassedTunnel::Way read_way(const json& text) {
    PassedTunnel::Way way;
    way.held = text_at(text, "held", kRelayBytesMax);
    way.ended = text.at("ended").get<bool>();
    if (way.ended && !way.held.empty()) {
        refuse_proxy("a way that has ended and holds bytes");
    }
    return way;
}

json write_tunnel(const PassedTunnel& tunnel) {
    return {
        {"target", to_string(tunnel.target)},
        {"address", tunnel.address},
        {"server_name", tunnel.server_name},
        {"bytes_up", tunnel.bytes_up},
        {"bytes_down", tunnel.bytes_down},
        {"began_at", to_ticks(tunnel.began_at)},
        {"up", write_way(tunnel.up)},
        {"down", write_way(tunnel.down)}};
}

PassedTunnel read_passed_tunnel(
    const json& text, const NetworkPolicy& policy, steady_clock::time_point now) {
    PassedTunnel tunnel;
    tunnel.target = of(parse_authority(text_at(text, "target"), 0), "target");
    tunnel.address = text_at(text, "address");
    if (!read_ipv4(tunnel.address) && !read_ipv6(tunnel.address)) {
        refuse_proxy("address");
    }
    tunnel.server_name = text_at(text, "server_name");
    if (!tunnel.server_name.empty()) {
        (void)of(parse_host(tunnel.server_name), "server_name");
    }
    tunnel.bytes_up = count_at(text, "bytes_up");
    tunnel.bytes_down = count_at(text, "bytes_down");
    tunnel.began_at = read_moment(text.at("began_at"), now);
    tunnel.up = read_way(text.at("up"));
    tunnel.down = read_way(text.at("down"));
    const bool bound = std::any_of(
        policy.secrets.begin(), policy.secrets.end(), [&tunnel](const SecretBinding& binding) {
            return covers(binding.host, tunnel.target.host.text, tunnel.target.port);
        });
    if (bound) {
        refuse_proxy("a tunnel past the host of a secret");
    }
    return tunnel;
}

/// Takes them one after another.
class Descriptors {
 public:
    explicit Descriptors(std::vector<UniqueFd> all) : all_(std::move(all)) {}

    UniqueFd take() {
        if (next_ == all_.size()) {
            refuse_proxy("a descriptor is missing");
        }
        return std::move(all_[next_++]);
    }
    UniqueFd take_connected() {
        UniqueFd fd = take();
        if (!is_stream(fd) || is_listening(fd)) {
            refuse_proxy("a descriptor that is no connection");
        }
        return fd;
    }
    bool is_empty() const { return next_ == all_.size(); }

 private:
    std::vector<UniqueFd> all_;
    std::size_t next_ = 0;
};

PassedProxy read(const json& text, std::vector<UniqueFd> fds, steady_clock::time_point now) {
    Descriptors descriptors(std::move(fds));
    PassedProxy proxy;
    proxy.listener = descriptors.take();
    if (!is_stream(proxy.listener) || !is_listening(proxy.listener)) {
        refuse_proxy("a listener that does not listen");
    }
    proxy.policy = read_policy(text);
    proxy.traffic = {
        count_at(text, "requests"),
        count_at(text, "denied"),
        count_at(text, "bytes_up"),
        count_at(text, "bytes_down")};
    proxy.requests = read_moments(text, "recent", limits::kEgressRequestsPerMinuteMax, now);
    proxy.refusals = read_moments(text, "refusals", kRefusalsLoggedPerMinuteMax, now);
    proxy.suppressed = count_at(text, "suppressed");
    for (const json& one : list_at(text, "connections", kConnectionsMax)) {
        PassedConnection connection;
        connection.client = descriptors.take_connected();
        if (!one.is_null()) {
            connection.host = descriptors.take_connected();
            connection.tunnel = read_passed_tunnel(one, proxy.policy, now);
        }
        proxy.connections.push_back(std::move(connection));
    }
    if (!descriptors.is_empty()) {
        refuse_proxy("a descriptor of nothing");
    }
    return proxy;
}

}  // namespace

bool is_listening(const UniqueFd& fd) {
    return option_of(fd, SO_ACCEPTCONN) == 1;
}

json write_proxy(PassedProxy& proxy, std::vector<UniqueFd>& fds) {
    fds.push_back(std::move(proxy.listener));
    json connections = json::array();
    for (PassedConnection& connection : proxy.connections) {
        fds.push_back(std::move(connection.client));
        if (connection.tunnel) {
            fds.push_back(std::move(connection.host));
        }
        connections.push_back(connection.tunnel ? write_tunnel(*connection.tunnel) : json());
    }
    json text = write_policy(proxy.policy);
    text.update(
        {{"requests", proxy.traffic.requests},
         {"denied", proxy.traffic.denied},
         {"bytes_up", proxy.traffic.bytes_up},
         {"bytes_down", proxy.traffic.bytes_down},
         {"recent", write_moments(proxy.requests)},
         {"refusals", write_moments(proxy.refusals)},
         {"suppressed", proxy.suppressed},
         {"connections", std::move(connections)}});
    return text;
}

Result<PassedProxy> read_proxy(
    const json& text, std::vector<UniqueFd> fds, steady_clock::time_point now) {
    try {
        return read(text, std::move(fds), now);
    } catch (const json::exception& failure) {
        return Error(ErrorCode::kProtocol, std::string("passed network: ") + failure.what());
    }
}

}  // namespace cellkeep::egress
