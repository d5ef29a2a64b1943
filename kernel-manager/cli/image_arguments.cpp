// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/image_arguments.hpp"

namespace cellkeep::cli {

void add_image_commands(CLI::App& app, ImageArguments& arguments) {
    CLI::App* image =
        app.add_subcommand("image", "The private copies of the system that sessions run from");
    image->require_subcommand(1);
    CLI::App* build = image->add_subcommand(
        "build", "Make the environment's image if it is not there, and print its digest");
    build->add_option(
        "--package",
        arguments.build.packages,
        "A Debian package of this host that the image gets too; then start the server "
        "with "
        "--image and the digest. Repeat it for several");
    build->add_option(
        "--kernels", arguments.build.kernels, "As for serve. Repeat it for several directories");
    build->add_option(
        "--foreign-kernels",
        arguments.build.foreign_kernels,
        "As for serve. Repeat it for several directories");
    image->add_subcommand("list", "Show the images")
        ->add_flag("--json", arguments.list_as_json, "For programs");
    CLI::App* remove = image->add_subcommand("remove", "Remove an image that no server uses");
    CLI::Option_group* what = remove->add_option_group("Which");
    what->add_option("DIGEST", arguments.remove.digest, "Or the beginning of one");
    what->add_flag("--unused", arguments.remove.unused, "All that no server uses");
    what->require_option(1);
    image->add_subcommand("verify", "Read images again and compare every byte with what was noted")
        ->add_option("DIGEST", arguments.verify_digest, "Default: all");
}

std::optional<int> run_image_commands(const CLI::App& app, const ImageArguments& arguments) {
    if (!app.got_subcommand("image")) {
        return std::nullopt;
    }
    const CLI::App* image = app.get_subcommand("image");
    if (image->got_subcommand("build")) {
        return image_build(arguments.build);
    }
    if (image->got_subcommand("list")) {
        return image_list(arguments.list_as_json);
    }
    if (image->got_subcommand("remove")) {
        return image_remove(arguments.remove);
    }
    return image_verify(arguments.verify_digest);
}

}  // namespace cellkeep::cli
