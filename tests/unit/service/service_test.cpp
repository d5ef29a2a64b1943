// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/service.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

namespace cellkeep::session {
namespace {

TEST_CASE("the service shows what it is configured with", "[service]") {
    boost::asio::io_context io;
    ServiceConfig config;
    config.ceilings.memory_mb = 77;
    KernelSpec spec;
    spec.language = "python";
    config.catalog.add(spec);
    Service real(io, config);
    SessionService& service = real;
    CHECK(service.languages() == std::vector<std::string>{"python"});
    CHECK(service.find_spec("python") != nullptr);
    CHECK(service.find_spec("cobol") == nullptr);
    CHECK(service.ceilings().memory_mb == 77);
    CHECK(service.list().empty());
    CHECK(service.find("ses_1") == nullptr);
    CHECK(service.remove("ses_1").has_error());
}

}  // namespace
}  // namespace cellkeep::session
