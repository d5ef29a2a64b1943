// SPDX-License-Identifier: Apache-2.0
//
// Addresses that answer what else the application answers for them.
#include "kernel-manager/http/application.hpp"

#include <catch2/catch.hpp>

#include <optional>
#include <string>
#include <vector>

namespace cellkeep::http {
namespace {

TEST_CASE("an address may answer OPTIONS itself", "[http][application]") {
    Application application(TokenAuth("t"), HostGuard(std::vector<std::string>()));
    application.router().add(Route(Access::kChange, "OPTIONS", "/own", nullptr));
    Request request;
    request.method = "OPTIONS";
    request.headers.add("Host", "localhost");
    request.headers.add("Authorization", "Bearer t");
    CHECK(application.admit(request, "/own").route != nullptr);
    // Not without a token.
    Headers without;
    without.add("Host", "localhost");
    request.headers = without;
    CHECK(application.admit(request, "/own").refusal.status == 401);
}

TEST_CASE("a credential of its own may be a browser's", "[http][application]") {
    const bool by_header = GENERATE(true, false);
    Application application(TokenAuth("t"), HostGuard(std::vector<std::string>()));
    application.router().add(Route(Access::kChange, "POST", "/own", nullptr));
    application.set_credentials("own", [by_header](const Request& /*request*/) {
        return std::optional(Application::Identified({"alice", Role::kAgent}, by_header));
    });
    Request request;
    request.method = "POST";
    request.headers.add("Host", "localhost");
    request.headers.add("Origin", "http://evil.example");
    const auto admission = application.admit(request, "/own");
    CHECK((admission.route != nullptr) == by_header);
    CHECK(admission.refusal.status == (by_header ? 200 : 403));
    request.headers.set("Origin", "http://localhost");
    CHECK(application.admit(request, "/own").route != nullptr);
    CHECK(request.principal.name == "alice");
}

}  // namespace
}  // namespace cellkeep::http
