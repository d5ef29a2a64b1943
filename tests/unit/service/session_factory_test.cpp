// SPDX-License-Identifier: Apache-2.0
//
// The order for a session's sandbox, and the failures before a session exists. With real sandboxes:
// tests/integration/session.
#include "kernel-manager/service/session_factory.hpp"

#include "kernel-manager/service/zygote_recipe.hpp"
#include "tests/unit/service/fake_managed_session.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

namespace cellkeep::session {
namespace {

ServiceConfig factory_config() {
    ServiceConfig config;
    config.host_id_base = 1000;
    config.sessions_max = 10;
    config.allow_degraded = {"freeze"};
    KernelSpec spec;
    spec.language = "python";
    spec.argv = {"/bin/kernel"};
    spec.env = {"A=1"};
    config.catalog.add(spec);
    spec.environment.name = "geo";
    spec.read_only = {{"/store/geo", "/opt/geo"}};
    config.catalog.add(spec);
    return config;
}

struct FactoryFixture {
    boost::asio::io_context io;
    std::shared_ptr<const ServiceConfig> config =
        std::make_shared<const ServiceConfig>(factory_config());
    std::optional<sandbox::Policy> asked;
    std::shared_ptr<SessionFactory> factory = SessionFactory::create(
        io, config, [this](std::string, sandbox::Policy policy) { return refuse(policy); });
    std::optional<Error> error;

    boost::asio::awaitable<Result<sandbox::Sandbox>> refuse(sandbox::Policy policy) {
        asked = std::move(policy);
        co_return Error(ErrorCode::kUnavailable, "no");
    }
    boost::asio::awaitable<Status> make(SessionFactory::Order order) {
        auto made = co_await factory->make(std::move(order));
        co_return made.has_error() ? Status(std::move(made).error()) : Status(ok());
    }
    boost::asio::awaitable<Status> check(std::vector<InputFile> files) {
        auto checked = co_await factory->check_inputs(std::move(files));
        co_return checked.has_error() ? Status(std::move(checked).error()) : Status(ok());
    }
};

TEST_CASE_METHOD(FactoryFixture, "a sandbox is asked for with the limits", "[service][factory]") {
    SessionFactory::Order order;
    order.slot = 5;
    order.options.limits.memory_mb = 3;
    order.options.limits.disk_mb = 2;
    order.options.limits.processes = 9;
    std::optional<Status> done;
    test::begin_wait(io, make(std::move(order)), done);
    REQUIRE(done.has_value());
    CHECK(done->error().message() == "create session: no");
    REQUIRE(asked.has_value());
    CHECK(asked->host_uid == 1005);
    CHECK(asked->host_gid == 1005);
    CHECK(asked->limits.memory_bytes == 3U << 20U);
    CHECK(asked->limits.workspace_bytes == 2U << 20U);
    CHECK(asked->limits.processes == 9);
    CHECK(asked->allow_degraded.contains("freeze"));
    CHECK(asked->inputs.empty());
}

TEST_CASE_METHOD(
    FactoryFixture, "a sandbox shows the environment that was chosen", "[service][factory]") {
    SessionFactory::Order order;
    order.options.environment = "geo";
    std::optional<Status> done;
    test::begin_wait(io, make(std::move(order)), done);
    REQUIRE(asked.has_value());
    REQUIRE(asked->read_only.size() == 1);
    CHECK(asked->read_only[0].target == "/opt/geo");
    asked.reset();
    std::optional<Status> refused;
    SessionFactory::Order other;
    other.options.environment = "nlp";
    test::begin_wait(io, make(std::move(other)), refused);
    REQUIRE(refused.has_value());
    CHECK(refused->error().field() == "environment");
    CHECK_FALSE(asked.has_value());
}

TEST_CASE_METHOD(
    FactoryFixture,
    "a branch shows what its parent shows, whatever is offered now",
    "[service][factory]") {
    std::optional<sandbox::Policy> branched;
    factory = SessionFactory::create(
        io,
        config,
        [this](std::string, sandbox::Policy policy) { return refuse(policy); },
        [&](sandbox::Policy policy, std::shared_ptr<sandbox::BranchLauncher>)
            -> boost::asio::awaitable<Result<sandbox::Sandbox>> {
            branched = std::move(policy);
            co_return Error(ErrorCode::kUnavailable, "no");
        });
    KernelSpec former = *config->catalog.find("python");
    former.read_only = {{"/store/former", "/opt/former"}};
    former.images = {{"/images/former", "digest", "format"}};
    auto catalog = std::make_shared<KernelCatalog>();
    catalog->add(former);
    KernelSpec gone = former;
    gone.language = "gone";
    gone.read_only = {{"/store/gone", "/opt/gone"}};
    catalog->add(gone);
    const auto parent = std::make_shared<FamilyMember>(3);
    SessionFactory::Order order;
    order.slot = 5;
    order.options.environment = "nlp";  // which is not offered any more
    order.seed.emplace();
    order.seed->parent = parent;
    order.seed->spec = former;
    order.seed->catalog = catalog;
    order.branch = BranchInfo{"ses_1", "ckp_1", {}};
    std::optional<Status> done;
    test::begin_wait(io, make(std::move(order)), done);
    CHECK_FALSE(asked.has_value());
    REQUIRE(branched.has_value());
    CHECK(branched->host_uid == 1003);  // its family's
    REQUIRE(branched->read_only.size() == 2);
    CHECK(branched->read_only[0].target == "/opt/former");
    CHECK(branched->read_only[1].target == "/opt/gone");
    REQUIRE(branched->images.size() == 1);
    CHECK(branched->images[0].root == "/images/former");
}

TEST_CASE_METHOD(
    FactoryFixture, "inputs need a directory of the operator's", "[service][factory]") {
    std::vector<InputFile> files(1);
    files[0].path = "a";
    std::optional<Status> done;
    test::begin_wait(io, check(files), done);
    CHECK(done->has_value());  // bytes of the request's own
    files[0].from = "b";
    std::optional<Status> refused;
    test::begin_wait(io, check(files), refused);
    CHECK(refused->has_error());
}

TEST_CASE("a zygote has the id before the first session's", "[service][zygote]") {
    const ServiceConfig config = factory_config();
    const KernelSpec& spec = *config.catalog.find("python");
    const Libraries libraries = GENERATE(Libraries::kImported, Libraries::kNone);
    const auto zygote =
        describe_zygote(spec, libraries, combine_languages(config.catalog, spec), config);
    CHECK(zygote.policy.host_uid == 999);
    REQUIRE(zygote.policy.zygote.has_value());
    CHECK(zygote.policy.zygote->first_id == 999);
    CHECK(zygote.policy.zygote->id_count == 10 + kZygoteIdsSpare);
    REQUIRE(zygote.program.argv.size() == 2);
    const bool bare = libraries == Libraries::kNone;
    CHECK(zygote.program.argv[1] == (bare ? kBareZygoteArgument : kZygoteArgument));
    CHECK(zygote.patience > std::chrono::seconds(0));
    const auto& env = zygote.program.env;
    CHECK(env.front() == "A=1");
    CHECK(std::find(env.begin(), env.end(), "OMP_NUM_THREADS=1") != env.end());
}

}  // namespace
}  // namespace cellkeep::session
