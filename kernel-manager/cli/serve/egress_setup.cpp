// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/egress_setup.hpp"

#include "kernel-manager/cli/log.hpp"
#include "kernel-manager/egress/tls/tls_authority.hpp"
#include "kernel-manager/session/passing/passed_network.hpp"
#include "protocol/support/syscall.hpp"

#include <utility>

namespace cellkeep::cli {

namespace {

constexpr std::size_t kPemBytesMax = 1ULL << 20U;

/// Parses each text of an option, or says which one is wrong.
template <typename Parse, typename Take>
Status each(
    const std::optional<std::vector<std::string>>& texts,
    const std::string& option,
    const Parse& parse,
    const Take& take) {
    if (!texts) {
        return ok();
    }
    for (const std::string& text : *texts) {
        auto value = parse(text);
        if (value.has_error()) {
            return std::move(value).error().with_context(option + ": \"" + text + "\"");
        }
        take(std::move(value).value());
    }
    return ok();
}

/// Null: there is none, or it is not of the form.
std::shared_ptr<egress::TlsAuthority> take_authority(const nlohmann::json& left) {
    auto passed = session::read_authority(left);
    if (passed.has_value() && !passed.value()) {
        return nullptr;
    }
    auto authority = passed.has_error()
                         ? Result<std::unique_ptr<egress::TlsAuthority>>(passed.error())
                         : egress::TlsAuthority::go_on(*passed.value());
    if (authority.has_error()) {
        log_event(
            LogLevel::kWarning,
            "egress_authority",
            {{"message", "sessions lose their secrets: " + authority.error().message()}});
        return nullptr;
    }
    return std::move(authority).value();
}

}  // namespace

Result<std::optional<session::PackageIndex>> plan_package_index(const ServeOptions& options) {
    if (!options.package_index) {
        return std::optional<session::PackageIndex>();
    }
    BOOST_OUTCOME_TRY(
        auto index,
        with_context(session::parse_package_index(*options.package_index), "package-index"));
    return std::optional(std::move(index));
}

Result<egress::EgressConfig> plan_egress(
    const ServeOptions& options, const std::optional<session::PackageIndex>& index) {
    egress::EgressConfig config;
    BOOST_OUTCOME_TRY(
        each(options.allow_egress, "allow-egress", egress::parse_ceiling, [&config](auto entry) {
            config.ceiling.push_back(std::move(entry));
        }));
    if (index) {
        config.ceiling.push_back(index->host);
    }
    const bool more = options.egress_permit_address || options.egress_resolve ||
                      options.egress_ca || options.secrets;
    if (config.ceiling.empty()) {
        if (more) {
            return Error(
                ErrorCode::kInvalidArgument,
                "egress-permit-address, egress-resolve, egress-ca and secrets need allow-egress or "
                "package-index");
        }
        return config;
    }
    BOOST_OUTCOME_TRY(each(
        options.egress_permit_address,
        "egress-permit-address",
        egress::parse_address_range,
        [&config](auto range) { config.permitted.push_back(std::move(range)); }));
    BOOST_OUTCOME_TRY(
        each(options.egress_resolve, "egress-resolve", egress::parse_fixed_name, [&](auto name) {
            config.fixed.insert_or_assign(std::move(name.first), std::move(name.second));
        }));
    if (options.egress_ca) {
        BOOST_OUTCOME_TRY(config.certificates, read_file(*options.egress_ca, kPemBytesMax));
        BOOST_OUTCOME_TRY(
            with_context(egress::check_certificates(config.certificates), *options.egress_ca));
    }
    if (options.secrets) {
        BOOST_OUTCOME_TRY(config.secrets, egress::load_secrets(*options.secrets));
    }
    return config;
}

nlohmann::json to_fields(const egress::EgressRecord& record) {
    // Without a method there was nothing that could have been allowed.
    const bool denied = egress::is_denial(record.reason) || record.method.empty();
    nlohmann::json fields = {
        {"session", record.session},
        {"decision", denied ? "deny" : "allow"},
        {"reason", egress::code_of(record.reason)},
        {"method", record.method},
        {"host", record.target.host.text},
        {"port", record.target.port},
        {"address", record.address},
        {"sni", record.server_name},
        {"secret", record.secret},
        {"status", record.status},
        {"bytes_up", record.bytes_up},
        {"bytes_down", record.bytes_down},
        {"ms", record.duration.count()}};
    if (record.suppressed > 0) {
        fields["suppressed"] = record.suppressed;
    }
    return fields;
}

Result<std::shared_ptr<egress::EgressService>> make_egress_service(
    boost::asio::io_context& io,
    egress::EgressConfig config,
    const std::string& directory,
    const nlohmann::json& authority) {
    if (config.ceiling.empty()) {
        return std::shared_ptr<egress::EgressService>();
    }
    nlohmann::json allowed = nlohmann::json::array();
    for (const egress::AllowedHost& entry : config.ceiling) {
        allowed.push_back(to_string(entry));
    }
    nlohmann::json permitted = nlohmann::json::array();
    for (const egress::AddressRange& range : config.permitted) {
        permitted.push_back(range.network.to_string() + "/" + std::to_string(range.prefix));
    }
    nlohmann::json secrets = nlohmann::json::array();
    for (const egress::Secret& secret : config.secrets) {
        secrets.push_back(secret.binding.name);
    }
    config.directory = directory;
    config.log = [](const egress::EgressRecord& record) {
        log_event(LogLevel::kInfo, "egress", to_fields(record));
    };
    config.authority = take_authority(authority);
    BOOST_OUTCOME_TRY(auto egress_service, egress::EgressService::create(io, std::move(config)));
    log_event(
        LogLevel::kInfo,
        "egress_allowed",
        {{"hosts", std::move(allowed)},
         {"permitted_addresses", std::move(permitted)},
         {"secrets", std::move(secrets)}});
    return egress_service;
}

}  // namespace cellkeep::cli
