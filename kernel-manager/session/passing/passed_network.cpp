// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/passing/passed_network.hpp"

#include "kernel-manager/egress/passing/passed_proxy.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace cellkeep::session {

using nlohmann::json;

namespace {

bool is_variable(const std::string& text) {
    return text.find('=') != std::string::npos && !text.starts_with('=') &&
           text.find('\0') == std::string::npos;
}

Result<std::vector<std::string>> read_variables(const json& text) {
    auto variables = text.get<std::vector<std::string>>();
    if (variables.size() > kNetworkVariablesMax ||
        !std::all_of(variables.begin(), variables.end(), is_variable)) {
        return Error(ErrorCode::kProtocol, "passed network: no variables");
    }
    return variables;
}

Status go_on_with_network(const json& text, std::vector<UniqueFd> fds, SessionSetup& setup) {
    if (!setup.egress_service) {
        return Error(ErrorCode::kUnavailable, "this server gives sessions no network");
    }
    try {
        BOOST_OUTCOME_TRY(auto variables, read_variables(text.at("variables")));
        BOOST_OUTCOME_TRY(
            auto proxy,
            egress::read_proxy(text.at("proxy"), std::move(fds), std::chrono::steady_clock::now()));
        BOOST_OUTCOME_TRY(auto going, setup.egress_service->go_on(setup.id, std::move(proxy)));
        setup.proxy = std::move(going.proxy);
        setup.network_env = std::move(variables);
        for (const std::string& name : going.withdrawn) {
            setup.log("session " + setup.id + ": this server does not allow it any more: " + name);
        }
    } catch (const json::exception& failure) {
        return Error(ErrorCode::kProtocol, std::string("passed network: ") + failure.what());
    }
    return ok();
}

}  // namespace

std::size_t bytes_of_network(const SessionSetup& setup) {
    std::size_t bytes = setup.proxy ? setup.proxy->passed_bytes() : 0;
    for (const std::string& variable : setup.network_env) {
        bytes += variable.size();
    }
    return bytes;
}

json write_network(const SessionSetup& setup, std::vector<UniqueFd>& fds) {
    if (!setup.proxy) {
        return {};
    }
    egress::PassedProxy proxy = setup.proxy->pass_on();
    return {{"variables", setup.network_env}, {"proxy", egress::write_proxy(proxy, fds)}};
}

void read_network(PassedSession& passed, SessionSetup& setup) {
    std::vector<UniqueFd> fds = std::exchange(passed.network, {});
    const json text = passed.state.is_object() ? passed.state.value("network", json()) : json();
    if (text.is_null()) {
        return;  // a program of an older format leaves none
    }
    const Status going = go_on_with_network(text, std::move(fds), setup);
    if (going.has_error()) {
        setup.log(
            "session " + setup.id + " goes on without its network: " + going.error().message());
    }
}

json write_authority(const std::optional<egress::TlsAuthority::Passed>& authority) {
    return authority ? json{{"key", authority->key}, {"certificate", authority->certificate}}
                     : json();
}

Result<std::optional<egress::TlsAuthority::Passed>> read_authority(const json& text) {
    using Passed = egress::TlsAuthority::Passed;
    if (text.is_null()) {
        return std::optional<Passed>();
    }
    try {
        return std::optional(
            Passed{text.at("key").get<std::string>(), text.at("certificate").get<std::string>()});
    } catch (const json::exception& failure) {
        return Error(ErrorCode::kProtocol, std::string("passed authority: ") + failure.what());
    }
}

}  // namespace cellkeep::session
