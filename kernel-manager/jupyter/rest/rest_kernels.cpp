// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/rest_kernels.hpp"

#include "kernel-manager/jupyter/rest/rest_kernelspecs.hpp"
#include "kernel-manager/session/session_options.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::jupyter {

std::shared_ptr<session::Session> RestKernels::find(
    const std::string& id, const http::Principal& principal) const {
    if (!is_uuid(id)) {
        return nullptr;  // the backend knows sessions by their other ids too
    }
    auto found = backend_.find(id);
    if (found != nullptr && !http::may_see(principal, found->info().owner)) {
        return nullptr;
    }
    return found;
}

std::vector<session::SessionInfo> RestKernels::visible(const http::Principal& principal) const {
    std::vector<session::SessionInfo> visible;
    for (const auto& each : backend_.list()) {
        if (session::SessionInfo info = each->info(); http::may_see(principal, info.owner)) {
            visible.push_back(std::move(info));
        }
    }
    return visible;
}

std::string RestKernels::why_not(const std::string& kernel_name) const {
    const auto absent = backend_.not_offered();
    std::vector<std::string> names;
    names.reserve(absent.size());
    for (const session::NotOffered& one : absent) {
        names.push_back(one.language);
    }
    const auto language = language_of(kernel_name, names);
    const auto found = std::find_if(
        absent.begin(), absent.end(), [&](const auto& one) { return one.language == language; });
    return found == absent.end() ? std::string() : describe(*found);
}

boost::asio::awaitable<RestKernels::Started> RestKernels::start(
    KernelOrder order, std::string owner) {
    const std::string& name = order.name.empty() ? config_.default_kernel_name : order.name;
    const auto language = language_of(name, backend_.languages());
    if (!language) {
        co_return Error(ErrorCode::kNotFound, name, why_not(name));
    }
    BOOST_OUTCOME_CO_TRY(
        ChosenEnvironment environment, choose_environment(order.env, config_.allowed_envs));
    log_dropped(environment);
    session::SessionOptions options;
    BOOST_OUTCOME_CO_TRY(options.working_directory, directory_in_workspace(order.path));
    if (const auto wish = environment.passed.find("KERNEL_WORKING_DIR");
        options.working_directory.empty() && wish != environment.passed.end()) {
        // A gateway client sets it to a directory of its own host: only a usable one counts.
        if (auto directory = directory_in_workspace(wish->second)) {
            options.working_directory = std::move(directory).value();
        }
    }
    options.kernel_id = std::move(order.kernel_id);
    options.language = *language;
    options.limits = config_.limits;
    options.cull = config_.cull;
    options.env = std::move(environment.passed);
    options.owner = std::move(owner);
    co_return co_await backend_.create(std::move(options));
}

void RestKernels::log_dropped(const ChosenEnvironment& environment) const {
    if (environment.dropped_count == 0 || !config_.log) {
        return;
    }
    std::string line = "variables of the client not passed to its kernel:";
    for (const std::string& each : environment.dropped) {
        line += " " + each;
    }
    if (environment.dropped_count > environment.dropped.size()) {
        line += " and others";
    }
    config_.log(line);
}

}  // namespace cellkeep::jupyter
