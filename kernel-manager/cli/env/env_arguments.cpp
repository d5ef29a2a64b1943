// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/env/env_arguments.hpp"

namespace cellkeep::cli {

void add_env_commands(CLI::App& app, EnvArguments& arguments) {
    CLI::App* env = app.add_subcommand("env", "Named environments: Python packages of your choice");
    env->require_subcommand(1);
    CLI::App* create = env->add_subcommand(
        "create",
        "Make an environment of packages from an index, and print its digest. A server that "
        "starts afterwards offers it");
    create->add_option("NAME", arguments.create.name, "Lower-case letters, digits, _ and -")
        ->required();
    CLI::Option_group* what = create->add_option_group("What it has");
    what->require_option(1);
    what->add_option(
        "--requirements",
        arguments.create.requirements,
        "A file with a package in each line, as pip reads it; no options but --hash");
    what->add_option(
        "--lock",
        arguments.create.lock,
        "A pylock.toml (PEP 751), or requirements that all have a version and hashes: these "
        "packages and no others");
    CLI::Option* project = what->add_option(
        "--pyproject",
        arguments.create.project,
        "A directory with a pyproject.toml: what the project depends on");
    create->add_option("--extra", arguments.create.extras, "Extras of the project. Default: none")
        ->delimiter(',')
        ->needs(project);
    create->add_option(
        "--index", arguments.create.index, "The address of an index of packages. Default: PyPI");
    create
        ->add_option(
            "--python",
            arguments.create.python,
            "Which Python: Debian's own, or 3.9 to 3.14 as python3.N on PATH, or a program's path")
        ->capture_default_str();
    create
        ->add_option(
            "--build-sdists",
            arguments.create.sources,
            "Packages, by name, that are built from their source if need be: each in a sandbox "
            "that reaches the index alone. Default: none, and wheels only")
        ->delimiter(',');
    create
        ->add_option(
            "--build-hosts",
            arguments.create.hosts,
            "HOST[:PORT] that builds may reach, too: where the index keeps its files")
        ->delimiter(',')
        ->needs("--build-sdists");
    CLI::App* update = env->add_subcommand(
        "update",
        "Make an environment again from what was asked for, with what the index has now. No server "
        "may have it");
    update->add_option("NAME", arguments.update.name)->required();
    update->add_option(
        "--index", arguments.update.index, "Another index, or the same with its password");
    update->add_option("--python", arguments.update.python, "Another Python");
    update
        ->add_option(
            "--build-hosts",
            arguments.update.hosts,
            "HOST[:PORT] that builds from source may reach besides the index")
        ->delimiter(',');
    env->add_subcommand("list", "Show the environments")
        ->add_flag("--json", arguments.as_json, "For programs");
    CLI::App* show = env->add_subcommand("show", "Show an environment and its packages");
    show->add_option("NAME", arguments.name)->required();
    show->add_flag("--json", arguments.as_json, "For programs");
    env->add_subcommand(
           "export", "Print an environment's packages with their versions, as requirements")
        ->add_option("NAME", arguments.name)
        ->required();
    env->add_subcommand("remove", "Remove an environment that no server has")
        ->add_option("NAME", arguments.name)
        ->required();
}

std::optional<int> run_env_commands(const CLI::App& app, const EnvArguments& arguments) {
    if (!app.got_subcommand("env")) {
        return std::nullopt;
    }
    const CLI::App* env = app.get_subcommand("env");
    if (env->got_subcommand("create")) {
        return env_create(arguments.create);
    }
    if (env->got_subcommand("update")) {
        return env_update(arguments.update);
    }
    if (env->got_subcommand("export")) {
        return env_export(arguments.name);
    }
    if (env->got_subcommand("list")) {
        return env_list(arguments.as_json);
    }
    if (env->got_subcommand("show")) {
        return env_show(arguments.name, arguments.as_json);
    }
    return env_remove(arguments.name);
}

}  // namespace cellkeep::cli
