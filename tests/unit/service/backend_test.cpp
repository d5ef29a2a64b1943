// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/service.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

namespace cellkeep::session {
namespace {

TEST_CASE("the real backend shows what its service knows", "[session][backend]") {
    boost::asio::io_context io;
    ServiceConfig config;
    config.ceilings.memory_mb = 77;
    KernelSpec spec;
    spec.language = "python";
    config.catalog.add(spec);
    Service service(io, config);
    Backend& backend = service;
    CHECK(backend.languages() == std::vector<std::string>{"python"});
    CHECK(backend.find_spec("python") != nullptr);
    CHECK(backend.find_spec("cobol") == nullptr);
    CHECK(backend.ceilings().memory_mb == 77);
    CHECK(backend.list().empty());
    CHECK(backend.find("ses_1") == nullptr);
    CHECK(backend.remove("ses_1").has_error());
}

}  // namespace
}  // namespace cellkeep::session
