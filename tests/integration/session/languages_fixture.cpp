// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/session/languages_fixture.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <optional>
#include <utility>

namespace cellkeep::test {

session::ServiceConfig config_with(const std::vector<std::string>& names) {
    auto config = service_config();
    for (const std::string& name : names) {
        session::KernelSpec spec = *config.catalog.find("python");
        spec.language = name;
        spec.forkable = false;
        config.catalog.add(std::move(spec));
    }
    return config;
}

session::ExecutionRequest in(const std::string& language, std::string code) {
    session::ExecutionRequest request;
    request.language = language;
    request.code = std::move(code);
    return request;
}

std::shared_ptr<session::Execution> begin(
    session::Session& session, const std::string& language, std::string code) {
    auto begun = session.begin(in(language, std::move(code)));
    INFO((begun.has_error() ? begun.error().message() : ""));
    REQUIRE(begun.has_value());
    return std::move(begun).value();
}

const session::ExecutionResult& finish(
    ServiceFixture& fixture, const session::Execution& execution) {
    fixture.run_until([&] { return execution.result() != nullptr; });
    return *execution.result();
}

std::string until(const std::string& file) {
    return "import os, time\nprint('waiting', flush=True)\nwhile not os.path.exists('" + file +
           "'): time.sleep(0.01)";
}

void wait_for_waiting(ServiceFixture& fixture, const session::Execution& execution) {
    fixture.run_until([&] {
        std::uint64_t seen = 0;
        while (const auto event = execution.events().after(seen).event) {
            if (event->type == "stdout") {
                return true;
            }
            seen = event->sequence;
        }
        return false;
    });
}

session::KernelState state_of(const session::Session& session, const std::string& language) {
    for (const auto& one : session.info().languages) {
        if (one.name == language && one.state.has_value()) {
            return *one.state;
        }
    }
    FAIL("the session does not run " << language);
    return session::KernelState::kDead;
}

}  // namespace cellkeep::test
