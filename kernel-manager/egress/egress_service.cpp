// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/egress_service.hpp"

#include "protocol/limits.hpp"
#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

namespace cellkeep::egress {

namespace {

constexpr std::size_t kPlaceholderBytes = 12;

Error forbid(const std::string& what, const std::string& hint) {
    return {ErrorCode::kPermissionDenied, what, hint};
}

/// The variables that HTTP clients look at: both spellings, because they disagree about which.
std::vector<std::string> proxy_environment() {
    const std::string proxy = "http://127.0.0.1:" + std::to_string(kProxyPort);
    const std::string direct = "localhost,127.0.0.1";
    std::vector<std::string> environment = {
        "HTTP_PROXY=" + proxy,
        "HTTPS_PROXY=" + proxy,
        "http_proxy=" + proxy,
        "https_proxy=" + proxy,
        "NO_PROXY=" + direct,
        "no_proxy=" + direct,
        "PIP_DISABLE_PIP_VERSION_CHECK=1"};
    for (const char* name :
         {"SSL_CERT_FILE",
          "REQUESTS_CA_BUNDLE",
          "CURL_CA_BUNDLE",
          "NODE_EXTRA_CA_CERTS",
          "PIP_CERT",
          "GIT_SSL_CAINFO"}) {
        environment.push_back(std::string(name) + "=" + kBundleInside);
    }
    return environment;
}

}  // namespace

Result<AllowedHost> parse_ceiling(std::string_view text) {
    if (text.starts_with("*:")) {
        BOOST_OUTCOME_TRY(const std::uint16_t port, parse_port(text.substr(2)));
        return AllowedHost{"", port, true};
    }
    return parse_allowed_host(text);
}

Result<std::pair<std::string, Address>> parse_fixed_name(std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) {
        return Error(ErrorCode::kInvalidArgument, "must be NAME=ADDRESS");
    }
    BOOST_OUTCOME_TRY(const Host host, parse_host(text.substr(0, equals)));
    BOOST_OUTCOME_TRY(const AddressRange range, parse_address_range(text.substr(equals + 1)));
    if (host.address || range.prefix != (range.network.is_v4() ? 32U : 128U)) {
        return Error(ErrorCode::kInvalidArgument, "must be NAME=ADDRESS");
    }
    return std::pair(host.text, range.network);
}

struct EgressService::State {
    explicit State(boost::asio::io_context& context) : io(context) {}

    boost::asio::io_context& io;
    EgressConfig config;
    std::shared_ptr<Resolver> resolver;
    ProxyParts parts;
    std::string trusted;   // PEM: by every session
    bool goes_on = false;  // sessions of the program before trust the authority

    /// Null: it is not offered, or not as it is bound there.
    const Secret* find(const SecretBinding& binding) const {
        const auto found = std::find_if(
            config.secrets.begin(), config.secrets.end(), [&binding](const Secret& secret) {
                return secret.binding == binding;
            });
        return found == config.secrets.end() ? nullptr : &*found;
    }
    bool is_covered(const AllowedHost& entry) const {
        return std::any_of(
            config.ceiling.begin(), config.ceiling.end(), [&entry](const AllowedHost& most) {
                return covers(most, entry);
            });
    }
};

EgressService::EgressService(std::unique_ptr<State> state) : state_(std::move(state)) {}
EgressService::~EgressService() = default;

Bundle::~Bundle() {
    if (!path_.empty()) {
        std::error_code ignored;  // Ignored: it holds nothing that anybody may not see.
        (void)std::filesystem::remove(path_, ignored);
    }
}

Result<std::shared_ptr<EgressService>> EgressService::create(
    boost::asio::io_context& io, EgressConfig config) {
    auto state = std::make_unique<State>(io);
    if (!config.certificates.empty()) {
        BOOST_OUTCOME_TRY(check_certificates(config.certificates));
    }
    auto resolver = std::make_shared<SystemResolver>(io, config.fixed);
    state->parts.dialer = std::make_shared<Dialer>(resolver, config.permitted);
    state->resolver = std::move(resolver);
    if (!config.secrets.empty()) {
        state->goes_on = config.authority != nullptr;
        state->parts.authority = config.authority;
        if (!state->goes_on) {
            BOOST_OUTCOME_TRY(auto authority, TlsAuthority::create());
            state->parts.authority = std::move(authority);
        }
        BOOST_OUTCOME_TRY(state->parts.client_context, make_client_context(config.certificates));
    }
    state->parts.limits = config.limits;
    state->parts.log = config.log;
    state->trusted = system_certificates() + config.certificates;
    state->config = std::move(config);
    return std::shared_ptr<EgressService>(new EgressService(std::move(state)));
}

Status EgressService::check_allow(const std::vector<AllowedHost>& allow) const {
    if (state_->config.ceiling.empty()) {
        return forbid(
            "network: this server gives sessions no network",
            "Its operator must name hosts with --allow-egress.");
    }
    if (allow.size() > limits::kEgressAllowedHostsMax) {
        return Error::in_field(
            ErrorCode::kInvalidArgument,
            "network/allow",
            "more than " + std::to_string(limits::kEgressAllowedHostsMax) + " entries");
    }
    for (const AllowedHost& entry : allow) {
        if (!state_->is_covered(entry)) {
            return forbid(
                "network/allow: " + to_string(entry) + " is not among what the operator allows",
                "Ask for less, or have it added with --allow-egress.");
        }
    }
    return ok();
}

Result<NetworkPolicy> EgressService::grant(const NetworkPolicy& asked) const {
    if (asked.mode == NetworkMode::kNone) {
        return NetworkPolicy();
    }
    BOOST_OUTCOME_TRY(check_allow(asked.allow));
    if (asked.secrets.size() > limits::kEgressSecretsMax) {
        return Error::in_field(
            ErrorCode::kInvalidArgument,
            "network/secrets",
            "more than " + std::to_string(limits::kEgressSecretsMax));
    }
    NetworkPolicy granted = asked;
    for (SecretBinding& binding : granted.secrets) {
        const auto& secrets = state_->config.secrets;
        const auto found =
            std::find_if(secrets.begin(), secrets.end(), [&binding](const Secret& secret) {
                return secret.binding.name == binding.name;
            });
        if (found == secrets.end()) {
            return forbid("network/secrets: " + binding.name + " is not offered", "");
        }
        binding = found->binding;
        if (!allows(granted, binding.host.host, binding.host.port)) {
            return Error::in_field(
                ErrorCode::kInvalidArgument,
                "network/secrets",
                binding.name + " is for " + to_string(binding.host) +
                    ", which network/allow does not name");
        }
    }
    return granted;
}

Result<EgressService::Opened> EgressService::open(
    const std::string& session_id, NetworkPolicy policy, UniqueFd listener) {
    Opened opened;
    opened.environment = proxy_environment();
    std::vector<Secret> secrets;
    for (const SecretBinding& binding : policy.secrets) {
        if (const Secret* const secret = state_->find(binding)) {
            secrets.push_back(*secret);
        }
        // Means nothing anywhere: only its place in a header counts.
        BOOST_OUTCOME_TRY(const std::string random, secret_hex(kPlaceholderBytes));
        opened.environment.push_back(
            binding.variable + "=cellkeep-placeholder-" + binding.name + "-" + random);
    }
    BOOST_OUTCOME_TRY(
        opened.proxy,
        SessionProxy::open(
            state_->io,
            session_id,
            std::move(policy),
            std::move(secrets),
            state_->parts,
            std::move(listener)));
    return opened;
}

Result<EgressService::GoingOn> EgressService::go_on(
    const std::string& session_id, PassedProxy passed) {
    GoingOn going;
    NetworkPolicy& policy = passed.policy;
    std::erase_if(policy.allow, [&](const AllowedHost& entry) {
        const bool covered = state_->is_covered(entry);
        if (!covered) {
            going.withdrawn.push_back(to_string(entry));
        }
        return !covered;
    });
    std::vector<Secret> secrets;
    std::erase_if(policy.secrets, [&](const SecretBinding& binding) {
        const Secret* const secret = state_->goes_on ? state_->find(binding) : nullptr;
        if (secret == nullptr) {
            going.withdrawn.push_back("the secret " + binding.name);
        } else {
            secrets.push_back(*secret);
        }
        return secret == nullptr;
    });
    BOOST_OUTCOME_TRY(
        going.proxy,
        SessionProxy::go_on(
            state_->io, session_id, std::move(passed), std::move(secrets), state_->parts));
    return going;
}

Result<std::optional<TlsAuthority::Passed>> EgressService::pass_on() const {
    if (!state_->parts.authority) {
        return std::optional<TlsAuthority::Passed>();
    }
    BOOST_OUTCOME_TRY(auto passed, state_->parts.authority->pass_on());
    return std::optional(std::move(passed));
}

Result<Bundle> EgressService::make_bundle(
    const std::string& session_id, const NetworkPolicy& policy) const {
    std::error_code error;
    std::filesystem::create_directories(state_->config.directory, error);
    if (error) {
        return Error(
            ErrorCode::kSystem, "mkdir(" + state_->config.directory + "): " + error.message());
    }
    std::string pem = state_->trusted;
    if (!policy.secrets.empty() && state_->parts.authority) {
        pem += state_->parts.authority->pem();
    }
    Bundle bundle(state_->config.directory + "/" + session_id + ".pem");
    constexpr mode_t kReadable = 0644;  // sessions run as other users
    BOOST_OUTCOME_TRY(
        const UniqueFd file,
        open_file(bundle.path(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, kReadable));
    if (::fchmod(file.get(), kReadable) != 0) {  // whatever the umask
        return Error::from_errno(errno, "fchmod(" + bundle.path() + ")");
    }
    BOOST_OUTCOME_TRY(write_all(file.get(), pem));
    return bundle;
}

void EgressService::stop() {
    state_->resolver->stop();
}

}  // namespace cellkeep::egress
