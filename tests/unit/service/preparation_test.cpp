// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/preparation.hpp"

#include "kernel-manager/service/service.hpp"
#include "tests/unit/service/fake_managed_session.hpp"

#include <catch2/catch.hpp>

#include <optional>

namespace cellkeep::session {
namespace {

using namespace std::chrono_literals;

struct PreparationFixture {
    boost::asio::io_context io;
    std::shared_ptr<Preparation> preparation = std::make_shared<Preparation>(io, true);
    std::optional<Status> first;
    std::optional<Status> second;

    void wait(std::chrono::milliseconds patience, std::optional<Status>& into) {
        test::begin_wait(io, Preparation::wait(preparation, patience), into);
    }
    void run() {
        io.restart();
        (void)io.run_for(20s);
    }
};

TEST_CASE_METHOD(PreparationFixture, "who waits goes on at the end", "[service][preparing]") {
    CHECK(preparation->is_preparing());
    wait(1h, first);
    wait(1h, second);
    CHECK_FALSE(first.has_value());
    preparation->end();
    run();
    REQUIRE((first && second));
    CHECK(first->has_value());
    CHECK(second->has_value());
    CHECK_FALSE(preparation->is_preparing());
    preparation->end();
    std::optional<Status> late;
    wait(0ms, late);
    REQUIRE(late);
    CHECK(late->has_value());
}

TEST_CASE_METHOD(PreparationFixture, "nobody waits longer than that", "[service][preparing]") {
    wait(1ms, first);
    run();
    REQUIRE(first);
    REQUIRE(first->has_error());
    CHECK(first->error().code() == ErrorCode::kUnavailable);
    CHECK(first->error().field() == "environment");
    CHECK(preparation->is_preparing());
}

TEST_CASE("a service begins when it is provided with a catalog", "[service][preparing]") {
    boost::asio::io_context io;
    KernelSpec spec;
    spec.language = "python";
    ServiceConfig config;
    config.catalog.add(spec);
    config.preparing = true;
    int warm = 0;
    config.log_ready = [&warm](std::chrono::milliseconds /*took*/) { ++warm; };
    Service service(io, config);
    (void)io.poll();
    CHECK(service.preparing());
    CHECK_FALSE(service.ready());
    CHECK(warm == 0);
    const KernelSpec* former = service.find_spec("python");
    KernelCatalog catalog;
    spec.language = "bash";
    catalog.add(spec);
    service.provide(catalog);
    CHECK_FALSE(service.preparing());
    io.restart();
    (void)io.poll();
    CHECK(service.ready());
    CHECK(warm == 1);
    CHECK(service.languages() == std::vector<std::string>{"bash"});
    CHECK(former->language == "python");  // as long as the service
}

TEST_CASE("a service that ends is provided with nothing", "[service][preparing]") {
    boost::asio::io_context io;
    ServiceConfig config;
    config.preparing = true;
    Service service(io, config);
    service.shutdown();
    CHECK_FALSE(service.preparing());
    KernelCatalog catalog;
    KernelSpec spec;
    spec.language = "python";
    catalog.add(spec);
    service.provide(catalog);
    CHECK(service.languages().empty());
}

}  // namespace
}  // namespace cellkeep::session
