// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/env/env_arguments.hpp"

namespace cellkeep::cli {

namespace {

void add_builds(CLI::App& create, EnvCreate& order) {
    create
        .add_option(
            "--build-sdists",
            order.sources,
            "Packages, by name, that are built from their source if need be: each in a sandbox "
            "that reaches the index alone. Default: none, and wheels only")
        ->delimiter(',');
    create
        .add_option(
            "--build-hosts",
            order.hosts,
            "HOST[:PORT] that builds may reach, too: where the index keeps its files")
        ->delimiter(',')
        ->needs("--build-sdists");
}

void add_create(CLI::App& env, EnvCreate& order) {
    CLI::App* create = env.add_subcommand(
        "create",
        "Make an environment of packages from an index, and print its digest. A server that "
        "starts afterwards offers it");
    create->add_option("NAME", order.name, "Lower-case letters, digits, _ and -")->required();
    CLI::Option_group* what = create->add_option_group("What it has");
    what->require_option(0, 1);  // none: then --npm or --apt
    what->add_option(
        "--requirements",
        order.requirements,
        "A file with a package in each line, as pip reads it; no options but --hash");
    what->add_option(
        "--lock",
        order.lock,
        "A pylock.toml (PEP 751), or requirements that all have a version and hashes: these "
        "packages and no others");
    what->add_option(
        "--conda",
        order.conda,
        "An environment.yml of conda's: its Python, and its packages from the index. If PyPI is "
        "not known to have one, it is named, and nothing is made");
    CLI::Option* project = what->add_option(
        "--pyproject",
        order.project,
        "A directory with a pyproject.toml: what the project depends on");
    create->add_option("--extra", order.extras, "Extras of the project. Default: none")
        ->delimiter(',')
        ->needs(project);
    create->add_option(
        "--index", order.index, "The address of an index of packages. Default: PyPI");
    create
        ->add_option(
            "--python",
            order.python,
            "Which Python: Debian's own, or 3.9 to 3.14 as python3.N on PATH, or a program's path")
        ->default_str(environments::kPythonVersion);
    add_builds(*create, order);
    CLI::Option* npm = create->add_option(
        "--npm",
        order.node_packages,
        "A package.json, or its directory: packages of Node.js for JavaScript and TypeScript, "
        "exactly those of a package-lock.json beside it");
    create
        ->add_option(
            "--npm-registry",
            order.node_registry,
            "The address of a registry of such packages. Default: npm's own")
        ->needs(npm);
    CLI::Option* apt = create->add_option(
        "--apt",
        order.debian_packages,
        "Packages of Debian, as NAME or NAME=VERSION, and what they need: programs, libraries and "
        "data, from this machine's own sources. No script of theirs runs");
    apt->delimiter(',');
    create->parse_complete_callback([what, npm, apt] {
        if (what->count_all() == 0 && npm->count() == 0 && apt->count() == 0) {
            throw CLI::RequiredError(
                "One of --requirements, --lock, --conda, --pyproject, --npm and --apt");
        }
    });
}

void add_update(CLI::App& env, EnvUpdate& order) {
    CLI::App* update = env.add_subcommand(
        "update",
        "Make an environment again from what was asked for, with what the index has now. No server "
        "may have it");
    update->add_option("NAME", order.name)->required();
    update->add_option("--index", order.index, "Another index, or the same with its password");
    update->add_option("--python", order.python, "Another Python");
    update->add_option(
        "--npm-registry",
        order.node_registry,
        "Another registry of packages of Node.js, or the same with its password");
    update
        ->add_option(
            "--build-hosts",
            order.hosts,
            "HOST[:PORT] that builds from source may reach besides the index")
        ->delimiter(',');
}

}  // namespace

void add_env_commands(CLI::App& app, EnvArguments& arguments) {
    CLI::App* env = app.add_subcommand("env", "Named environments: packages of your choice");
    env->require_subcommand(1);
    add_create(*env, arguments.create);
    add_update(*env, arguments.update);
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
