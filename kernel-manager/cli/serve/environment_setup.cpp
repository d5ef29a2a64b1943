// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/environment_setup.hpp"

#include "kernel-manager/cli/log.hpp"
#include "kernel-manager/environments/environment_store.hpp"
#include "protocol/support/result.hpp"

#include <optional>
#include <string>
#include <utility>

namespace cellkeep::cli {

namespace {

void log_environment(LogLevel level, const std::string& line) {
    log_event(level, "environment", {{"message", line}});
}

std::optional<session::KernelSpec> python_of(const session::Service& service) {
    const session::KernelSpec* const python = service.find_spec("python");
    return service.preparing() || python == nullptr ? std::nullopt : std::optional(*python);
}

Result<std::shared_ptr<session::EnvironmentArrivals>> make_arrivals(
    boost::asio::io_context& io, session::Service& service) {
    BOOST_OUTCOME_TRY(const std::string directory, environments::default_environments_directory());
    BOOST_OUTCOME_TRY(auto store, environments::EnvironmentStore::open(directory));
    return session::EnvironmentArrivals::create(
        io,
        std::move(store),
        {.python = [&service] { return python_of(service); },
         .offered = [&service] { return service.languages(); },
         .offer = [&service](session::KernelSpec spec) { return service.offer(std::move(spec)); },
         .log = [](const std::string& line) { log_environment(LogLevel::kInfo, line); }});
}

}  // namespace

std::shared_ptr<session::EnvironmentArrivals> watch_environments(
    boost::asio::io_context& io, session::Service& service) {
    auto made = make_arrivals(io, service);
    if (made.has_error()) {
        log_environment(LogLevel::kWarning, made.error().message());
        return nullptr;
    }
    made.value()->begin();
    return std::move(made).value();
}

}  // namespace cellkeep::cli
