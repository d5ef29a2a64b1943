// SPDX-License-Identifier: Apache-2.0
//
// Environments of which a package is built from its source, by a builder that the test brings.
#include "kernel-manager/environments/environment_store.hpp"
#include "tests/unit/environments/environments_fixture.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace cellkeep::test {
namespace {

std::string contents_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// A build that gives a file of this name.
environments::SourceBuilder giving(
    const std::string& file, std::vector<environments::SourceOrder>& orders) {
    return [file, &orders](const environments::SourceOrder& order) -> Result<std::string> {
        orders.push_back(order);
        std::ofstream(order.directory + "/" + file) << "wheel";
        return file;
    };
}

TEST_CASE(
    "a package that is named is built, and the installer kept to it", "[environments][source]") {
    EnvironmentsFixture fixture;
    std::vector<environments::SourceOrder> orders;
    auto order = fixture.order("geo", "Sourced==1.0 --hash=sha256:00\ntell==1\n");
    order.sources = {"SOURCED"};
    order.build_source = giving("sourced-1.0-py3-none-any.whl", orders);
    const auto made = fixture.store.create(order, [](const std::string&) {});
    INFO((made.has_error() ? made.error().message() : ""));
    // The fake installer does not normalise names.
    REQUIRE(made.has_value());
    CHECK(made.value().built == std::vector<std::string>{"sourced"});
    REQUIRE(orders.size() == 1);
    CHECK(orders[0].name == "sourced");
    CHECK(orders[0].requirements == std::vector<std::string>{"Sourced==1.0 --hash=sha256:00"});
    CHECK(orders[0].index == order.index);
    const std::string packages = fixture.packages("geo");
    CHECK(contains(contents_of(packages + "/constraints.txt"), "sourced==1.0\n"));
    CHECK(contains(contents_of(packages + "/arguments.txt"), "--find-links"));
    CHECK(contains(contents_of(packages + "/arguments.txt"), "--only-binary :all:"));
    CHECK(fixture.left_over() == 0);
}

TEST_CASE("a build that gives something else makes no environment", "[environments][source]") {
    EnvironmentsFixture fixture;
    std::vector<environments::SourceOrder> orders;
    auto order = fixture.order("geo", "sourced==1.0\nalpha==1.0\n");
    order.sources = {"sourced"};
    for (const char* file : {"alpha-1.0-py3-none-any.whl", "sourced.whl", "sourced"}) {
        CAPTURE(file);
        order.build_source = giving(file, orders);
        CHECK(fixture.refusal(order).code() == ErrorCode::kProtocol);
    }
    order.build_source = [](const environments::SourceOrder&) -> Result<std::string> {
        return Error(ErrorCode::kTimeout, "it took longer than it may");
    };
    const Error late = fixture.refusal(order);
    CHECK(late.code() == ErrorCode::kTimeout);
    CHECK(contains(late.message(), "build sourced from its source"));
    orders.clear();
    order.sources = {"sourced", "not a name"};
    order.build_source = giving("sourced-1.0-py3-none-any.whl", orders);
    CHECK(fixture.refusal(order).code() == ErrorCode::kInvalidArgument);
    CHECK(orders.empty());
    order.sources = {"unneeded"};
    order.build_source = giving("unneeded-1.0-py3-none-any.whl", orders);
    CHECK(fixture.refusal(order).code() == ErrorCode::kInvalidArgument);
    CHECK(orders.size() == 1);
}

}  // namespace
}  // namespace cellkeep::test
