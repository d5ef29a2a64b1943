// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/prepare.hpp"

#include "kernel-manager/image/image_mount.hpp"

#include <utility>

namespace cellkeep::image {

namespace {

Format environment_format() {
    return can_build_erofs() ? Format::kErofs : Format::kTree;
}

/// Reports a damaged image, removes it and returns nullopt, so that it is built again.
Result<std::optional<ImageInUse>> use_if_whole(
    Store& store, const std::optional<ImageRecord>& found, const Progress& progress) {
    if (!found) {
        return std::optional<ImageInUse>();
    }
    auto used = store.use(*found);
    if (used.has_error() && used.error().code() == ErrorCode::kProtocol) {
        progress(used.error().message());
        return std::optional<ImageInUse>();
    }
    BOOST_OUTCOME_TRY(auto image, std::move(used));
    return std::optional(std::move(image));
}

Result<std::optional<ImageInUse>> use_if_there(
    Store& store, const RecipeKey& recipe, Format format, const Progress& progress) {
    BOOST_OUTCOME_TRY(const auto found, store.find(recipe, format));
    BOOST_OUTCOME_TRY(auto used, use_if_whole(store, found, progress));
    if (used) {
        used->record.packages = recipe.packages;  // the recipe is of these
    }
    if (used && !used->record.comes_from(recipe.origin) && !recipe.origin.empty()) {
        // An older version made it, or two environments are the same. Ignored: it would only not be
        // found as an older state of this one.
        (void)store.note_recipe(used->record, recipe).has_value();
    }
    return used;
}

sandbox::PrivateImage describe(const ImageInUse& image) {
    return {
        image.root,
        image.record.digest,
        image.record.format == Format::kErofs ? "erofs image" : "private copy"};
}

EnvironmentSources environment_sources(const Sources& sources) {
    return {"", sources.python_environment, sources.packages, sources.environment_additions};
}

Result<Recipe> make_programs_recipe(const Sources& sources) {
    return programs_recipe(
        sources.kernel_program, sources.python_package_dir, sources.program_additions);
}

Result<ImageInUse> find_or_make_environment(
    Store& store, const Sources& sources, const Progress& progress) {
    BOOST_OUTCOME_TRY(const auto key, environment_key(environment_sources(sources)));
    BOOST_OUTCOME_TRY(auto there, use_if_there(store, key, environment_format(), progress));
    if (there) {
        return std::move(*there);
    }
    progress(
        "making the environment image (once; half a minute to two minutes, mostly 800 to "
        "1600 MiB)");
    BOOST_OUTCOME_TRY(const auto made, build_environment(store, sources, progress));
    return store.use(made);
}

Result<ImageInUse> find_or_make_programs(
    Store& store, const Sources& sources, const Progress& progress) {
    BOOST_OUTCOME_TRY(const auto recipe, make_programs_recipe(sources));
    BOOST_OUTCOME_TRY(auto there, use_if_there(store, recipe, Format::kTree, progress));
    if (there) {
        return std::move(*there);
    }
    BOOST_OUTCOME_TRY(const auto made, store.build(recipe, Format::kTree, progress));
    return store.use(made);
}

}  // namespace

std::vector<sandbox::PrivateImage> Prepared::images() const {
    return {describe(environment), describe(programs)};
}

Result<Prepared> prepare(
    Store& store,
    const Sources& sources,
    const std::optional<std::string>& environment_digest,
    const Progress& progress) {
    Prepared prepared;
    if (environment_digest) {
        BOOST_OUTCOME_TRY(const auto pinned, store.find(*environment_digest, Kind::kEnvironment));
        BOOST_OUTCOME_TRY(prepared.environment, store.use(pinned));
    } else {
        BOOST_OUTCOME_TRY(prepared.environment, find_or_make_environment(store, sources, progress));
    }
    BOOST_OUTCOME_TRY(prepared.programs, find_or_make_programs(store, sources, progress));
    return prepared;
}

Result<Prepared> find_prepared(Store& store, const Sources& sources) {
    const Error none(
        ErrorCode::kNotFound,
        "no image has been made of this environment yet",
        "cellkeep image build (a server that starts does it, too)");
    Prepared prepared;
    BOOST_OUTCOME_TRY(const auto key, environment_key(environment_sources(sources)));
    BOOST_OUTCOME_TRY(const auto environment, store.find(key, environment_format()));
    BOOST_OUTCOME_TRY(const auto programs_of, make_programs_recipe(sources));
    BOOST_OUTCOME_TRY(const auto programs, store.find(programs_of, Format::kTree));
    if (!environment || !programs) {
        return none;
    }
    BOOST_OUTCOME_TRY(prepared.environment, store.use(*environment));
    BOOST_OUTCOME_TRY(prepared.programs, store.use(*programs));
    return prepared;
}

Result<std::optional<Prepared>> find_without_building(
    Store& store, const Sources& sources, Age age, const Progress& progress) {
    BOOST_OUTCOME_TRY(const auto key, environment_key(environment_sources(sources)));
    const Format format = environment_format();
    BOOST_OUTCOME_TRY(auto environment, use_if_there(store, key, format, progress));
    if (!environment && age == Age::kAny) {
        BOOST_OUTCOME_TRY(const auto older, store.find_same_origin(key, format));
        BOOST_OUTCOME_TRY(environment, use_if_whole(store, older, progress));
    }
    if (!environment) {
        return std::optional<Prepared>();
    }
    Prepared prepared;
    prepared.environment = std::move(*environment);
    BOOST_OUTCOME_TRY(prepared.programs, find_or_make_programs(store, sources, progress));
    return std::optional(std::move(prepared));
}

Result<ImageRecord> build_environment(
    Store& store, const Sources& sources, const Progress& progress) {
    BOOST_OUTCOME_TRY(const auto recipe, environment_recipe(environment_sources(sources)));
    return store.build(recipe, environment_format(), progress);
}

}  // namespace cellkeep::image
