// SPDX-License-Identifier: Apache-2.0
//
// Which image the store finds for a recipe: the one that it gave, or another of its origin.
#include "kernel-manager/image/image_store.hpp"
#include "tests/unit/image/image_fixture.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::test {
namespace {

using image::Format;

bool is_found(const ImageFixture& fixture, const image::Recipe& recipe) {
    auto found = fixture.store.find(recipe, Format::kTree);
    REQUIRE(found.has_value());
    return found.value().has_value();
}

TEST_CASE("the newest image of an origin is found, whatever it was made of", "[image][store]") {
    ImageFixture fixture;
    image::Recipe recipe = fixture.recipe();
    recipe.origin = std::string(64, 'e');
    CHECK_FALSE(fixture.store.find_same_origin(recipe, Format::kTree).value());
    (void)fixture.build(recipe);
    change(fixture.host + "/share/data", "newer\n");
    recipe.fingerprint = std::string(64, 'b');
    const auto newer = fixture.build(recipe);
    recipe.fingerprint = std::string(64, 'c');
    const auto found = fixture.store.find_same_origin(recipe, Format::kTree).value();
    REQUIRE(found);
    CHECK(found->digest == newer.digest);
    CHECK_FALSE(fixture.store.find_same_origin(recipe, Format::kErofs).value());
    // One that an older version made gets its origin later.
    image::Recipe plain = fixture.recipe('d');
    change(fixture.host + "/share/data", "the third\n");
    const auto old = fixture.build(plain);
    CHECK(old.origin.empty());
    plain.origin = std::string(64, '1');
    REQUIRE(fixture.store.note_recipe(old, plain).has_value());
    plain.fingerprint = std::string(64, '2');
    CHECK(fixture.store.find_same_origin(plain, Format::kTree).value()->digest == old.digest);
    CHECK(fixture.store.use(old).has_value());
    image::Recipe other = recipe;
    other.kind = image::Kind::kEnvironment;
    CHECK_FALSE(fixture.store.find_same_origin(other, Format::kTree).value());
    other = recipe;
    other.origin = std::string(64, 'f');
    CHECK_FALSE(fixture.store.find_same_origin(other, Format::kTree).value());
    other.origin.clear();
    CHECK_FALSE(fixture.store.find_same_origin(other, Format::kTree).value());
}

TEST_CASE("an image has the packages of the recipe that was last made", "[image][store]") {
    ImageFixture fixture;
    image::Recipe recipe = fixture.recipe('a');
    recipe.packages = "sha256:" + std::string(64, '1');
    CHECK(fixture.build(recipe).packages == recipe.packages);
    CHECK(fixture.store.list().value().front().record.packages == recipe.packages);
    recipe = fixture.recipe('b');  // of equal contents
    recipe.packages = "sha256:" + std::string(64, '2');
    (void)fixture.build(recipe);
    REQUIRE(fixture.store.list().value().size() == 1);
    CHECK(fixture.store.list().value().front().record.packages == recipe.packages);
}

TEST_CASE("two recipes of equal contents share an image, each finds it", "[image][store]") {
    ImageFixture fixture;
    image::Recipe one = fixture.recipe('a');
    one.origin = std::string(64, 'e');
    image::Recipe two = fixture.recipe('b');
    two.origin = std::string(64, 'f');
    const auto first = fixture.build(one);
    const auto second = fixture.build(two);
    CHECK(first.digest == second.digest);
    CHECK(fixture.folders() == 1);
    CHECK(is_found(fixture, one));
    CHECK(is_found(fixture, two));
    CHECK(fixture.store.find_same_origin(one, Format::kTree).value());
    CHECK(fixture.store.find_same_origin(two, Format::kTree).value());
    CHECK_FALSE(is_found(fixture, fixture.recipe('c')));
}

}  // namespace
}  // namespace cellkeep::test
