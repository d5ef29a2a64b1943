// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/image_recipe.hpp"

#include "kernel-manager/image/recipe_fingerprint.hpp"
#include "protocol/sha256.hpp"

#include <filesystem>
#include <system_error>

namespace cellkeep::image {

namespace fs = std::filesystem;

std::string_view to_string(Kind kind) {
    return kind == Kind::kEnvironment ? "environment" : "programs";
}

void copy_additions(const std::vector<Addition>& additions, Recipe& recipe) {
    for (const Addition& addition : additions) {
        std::error_code error;
        const bool is_tree = fs::is_directory(addition.source, error);
        recipe.copies.push_back(
            {is_tree ? Copy::How::kTree : Copy::How::kFile, addition.source, addition.target});
    }
}

Result<Recipe> programs_recipe(
    const std::string& kernel_program,
    const std::string& package_dir,
    const std::vector<Addition>& additions) {
    Recipe recipe;
    recipe.kind = Kind::kPrograms;
    protocol::Sha256 digest;
    digest.update_field(kRecipeVersion);
    const std::string package = package_dir + "/cellkeep_kernel";
    add_stat(digest, kernel_program);
    add_tree_stat(digest, package);
    recipe.copies = {
        {Copy::How::kFile, kernel_program, "opt/cellkeep/bin/cellkeep-kernel-python"},
        {Copy::How::kTree, package, "opt/cellkeep/python/cellkeep_kernel"}};
    copy_additions(additions, recipe);
    add_additions(additions, digest);
    recipe.fingerprint = digest.finish();
    return recipe;
}

namespace {

Status carry_out(const Copy& copy, TreeWriter& writer) {
    switch (copy.how) {
        case Copy::How::kEntry:
            return writer.add_entry(copy.source, copy.target);
        case Copy::How::kFile:
            return writer.add_file(copy.source, copy.target);
        case Copy::How::kTree:
            return writer.add_tree(copy.source, copy.target);
    }
    return ok();
}

}  // namespace

Status copy_all(const Recipe& recipe, TreeWriter& writer) {
    for (const Copy& copy : recipe.copies) {
        BOOST_OUTCOME_TRY(carry_out(copy, writer));
    }
    return ok();
}

}  // namespace cellkeep::image
