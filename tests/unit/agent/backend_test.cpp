// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/agent/backend.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

namespace cellkeep::agent {
namespace {

TEST_CASE("the real backend shows what its service knows", "[agent][backend]") {
    boost::asio::io_context io;
    session::ServiceConfig config;
    config.ceilings.memory_mb = 77;
    session::KernelSpec spec;
    spec.language = "python";
    config.catalog.add(spec);
    session::Service service(io, config);
    ServiceBackend backend(service);
    CHECK(backend.languages() == std::vector<std::string>{"python"});
    CHECK(backend.ceilings().memory_mb == 77);
    CHECK(backend.list().empty());
    CHECK(backend.find("ses_1") == nullptr);
    CHECK(backend.remove("ses_1").has_error());
}

}  // namespace
}  // namespace cellkeep::agent
