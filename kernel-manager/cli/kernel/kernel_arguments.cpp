// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/kernel/kernel_arguments.hpp"

#include "kernel-manager/cli/kernel/launcher_argument.hpp"

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::cli {

namespace {

void add_notebook_options(CLI::App& sub, NotebookOptions& options) {
    sub.add_option("--language", options.language, "What the kernel speaks")->capture_default_str();
    sub.add_option(
        "--kernels",
        options.kernels,
        "Directory of languages besides those of this installation. Repeat it for several");
    sub.add_option("--memory-mb", options.memory_mb, "Memory, files included. Default: 2048");
    sub.add_option("--disk-mb", options.disk_mb, "Size of /workspace. Default: 1024");
    sub.add_option("--cpu-cores", options.cpu_cores, "Default: 2");
    sub.add_option("--processes", options.processes, "Processes and threads. Default: 256");
    sub.add_option(
           "--share-cwd",
           options.share_cwd,
           "ro: code inside sees the directory of the notebook, read-only, as /notebook. It works "
           "in /workspace, which is private, empty at first and gone with the kernel, either way")
        ->check(CLI::IsMember({"none", "ro"}))
        ->capture_default_str();
    sub.add_option(
           "--while-preparing",
           options.while_preparing,
           "What it runs from while the private copy of the system is made: wait (default), stale "
           "or host, as for serve")
        ->check(CLI::IsMember({"wait", "stale", "host"}));
    sub.add_option(
        "--allow-degraded",
        options.allow_degraded,
        "Start although this sandbox control is missing (see: cellkeep doctor). Repeat it for "
        "several");
}

void add_place(CLI::App& sub, KernelspecPlace& place) {
    sub.add_option(
        "--name", place.name, "The kernelspec's name. Default: cellkeep- and the language");
    auto* user =
        sub.add_flag("--user")->description("The user's own Jupyter directory: the default");
    sub.add_option(
           "--prefix,--sys-prefix",
           place.prefix,
           "Under DIR/share/jupyter/kernels instead: /usr/local for all users, or a virtual "
           "environment")
        ->excludes(user);
    sub.add_flag("--force", place.force, "Also a kernelspec of that name that is not Cellkeep's");
}

/// Other unknown options are an error of usage, as everywhere.
void ignore_launcher_arguments(CLI::App& kernel) {
    kernel.allow_extras();
    kernel.callback([&kernel] {
        std::vector<std::string> unknown = kernel.remaining();
        std::erase_if(unknown, [](const std::string& argument) {
            return !argument.starts_with('-') || is_launcher_argument(argument);
        });
        if (!unknown.empty()) {
            throw CLI::ExtrasError(std::move(unknown));
        }
    });
}

}  // namespace

void add_kernel_commands(CLI::App& app, KernelArguments& arguments) {
    CLI::App* kernel = app.add_subcommand(
        "kernel", "Be one sandboxed kernel for a Jupyter program; Jupyter itself starts this");
    kernel
        ->add_option(
            "-f,--connection-file",
            arguments.kernel.connection_file,
            "The connection file that the Jupyter program wrote")
        ->required();
    // `jupyter run FILE` and `jupyter console` hand their own arguments on to the kernel.
    kernel->add_option(
        "ARGUMENTS", arguments.ignored, "Of the Jupyter program, options for ipykernel; ignored");
    ignore_launcher_arguments(*kernel);
    add_notebook_options(*kernel, arguments.kernel.notebook);

    CLI::App* spec = app.add_subcommand(
        "kernelspec", "Make the sandboxed kernel known to JupyterLab and other Jupyter programs");
    spec->require_subcommand(1);
    CLI::App* install = spec->add_subcommand("install", "Install or update a kernelspec");
    add_place(*install, arguments.install.place);
    install->add_option(
        "--display-name",
        arguments.install.display_name,
        "What people see. Default: \"Python 3 (Cellkeep)\", or as the language is called");
    install->add_flag("--all", arguments.install.all, "A kernelspec for every language there is");
    install->add_flag(
        "!--no-check",
        arguments.install.check,
        "Do not start such a kernel once to see that it works and what it can do (debugging is "
        "then not announced)");
    add_notebook_options(*install, arguments.install.notebook);
    spec->add_subcommand("list", "Show the kernelspecs of Cellkeep");
    add_place(*spec->add_subcommand("remove", "Remove a kernelspec"), arguments.remove);
}

std::optional<int> run_kernel_commands(const CLI::App& app, const KernelArguments& arguments) {
    if (app.got_subcommand("kernel")) {
        return kernel(arguments.kernel);
    }
    if (!app.got_subcommand("kernelspec")) {
        return std::nullopt;
    }
    const CLI::App* spec = app.get_subcommand("kernelspec");
    if (spec->got_subcommand("install")) {
        return kernelspec_install(arguments.install);
    }
    return spec->got_subcommand("remove") ? kernelspec_remove(arguments.remove) : kernelspec_list();
}

}  // namespace cellkeep::cli
