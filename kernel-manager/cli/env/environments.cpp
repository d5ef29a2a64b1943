// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/env/environments.hpp"

#include "kernel-manager/cli/commands.hpp"
#include "kernel-manager/cli/env/source_workshop.hpp"
#include "kernel-manager/cli/env/wanted.hpp"
#include "kernel-manager/cli/run/console.hpp"
#include "kernel-manager/environments/installer.hpp"
#include "kernel-manager/environments/name.hpp"
#include "kernel-manager/environments/python_tree.hpp"
#include "kernel-manager/environments/requirements.hpp"
#include "kernel-manager/languages/installation.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace cellkeep::cli {

namespace {

using environments::EnvironmentStore;
using environments::NamedEnvironment;

constexpr const char* kDamaged = "damaged";

Result<EnvironmentStore> open_environments() {
    BOOST_OUTCOME_TRY(const std::string directory, environments::default_environments_directory());
    return EnvironmentStore::open(directory);
}

int report_outcome(const Status& status) {
    if (status.has_error()) {
        print_error(status.error());
        return kExitFailed;
    }
    return kExitDone;
}

/// Of what an environment is made of, all but its requirements and its sources.
Result<environments::EnvironmentOrder> make_order(
    const std::string& name, const std::string& index, const std::string& python) {
    environments::EnvironmentOrder order;
    order.name = name;
    order.index = index;
    BOOST_OUTCOME_TRY(order.uv, environments::find_uv());
    BOOST_OUTCOME_TRY(const session::Installation installation, session::find_installation());
    order.default_packages = environments::packages_of(installation.python_environment);
    order.kernel_package = installation.python_package_dir;
    order.python = python;
    order.folders = installation.program_path;
    order.debian.image_packages = session::image_sources(installation).packages;
    return order;
}

using Make = Result<environments::NamedRecord> (EnvironmentStore::*)(
    const environments::EnvironmentOrder&, const image::Progress&);

/// Prints the digest.
Status make_one(
    environments::EnvironmentOrder order,
    const std::vector<std::string>& sources,
    const std::vector<std::string>& hosts,
    Make make) {
    BOOST_OUTCOME_TRY(order.sources, environments::check_source_names(sources));
    std::unique_ptr<SourceWorkshop> workshop;
    if (!order.sources.empty()) {
        BOOST_OUTCOME_TRY(workshop, SourceWorkshop::open(order.index, hosts));
        order.build_source = [&workshop](const environments::SourceOrder& source) {
            return workshop->build(source);
        };
    }
    BOOST_OUTCOME_TRY(EnvironmentStore store, open_environments());
    const auto say = [](const std::string& line) { print_error("cellkeep: " + line + "\n"); };
    BOOST_OUTCOME_TRY(const auto record, (store.*make)(order, say));
    print(record.digest + "\n");
    return ok();
}

Status create_one(const EnvCreate& command) {
    BOOST_OUTCOME_TRY(environments::check_name(command.name));
    BOOST_OUTCOME_TRY(Wanted wanted, read_wanted(command));
    BOOST_OUTCOME_TRY(
        auto order, make_order(command.name, command.index, chosen_python(command, wanted.python)));
    order.requirements = std::move(wanted.requirements);
    order.locked = !command.lock.empty();
    order.node = std::move(wanted.node);
    wanted.debian.image_packages = std::move(order.debian.image_packages);
    order.debian = std::move(wanted.debian);
    return make_one(std::move(order), command.sources, command.hosts, &EnvironmentStore::create);
}

/// A lock is not kept: what it had is not known any more.
Result<environments::NodeOrder> node_order_of(
    const EnvUpdate& command, const environments::NodeRecord& record) {
    environments::NodeOrder order;
    if (record.wanted.empty()) {
        return order;
    }
    if (record.locked) {
        return Error(
            ErrorCode::kInvalidArgument,
            "its packages of Node.js are those of a package-lock.json, which is not kept",
            "Remove the environment, and make it again.");
    }
    order.dependencies = record.wanted;
    order.registry = command.node_registry.value_or("");
    BOOST_OUTCOME_TRY(order.npm, environments::find_npm());
    return order;
}

Status update_one(const EnvUpdate& asked) {
    environments::NamedRecord record;
    {
        BOOST_OUTCOME_TRY(const EnvironmentStore store, open_environments());
        BOOST_OUTCOME_TRY(NamedEnvironment former, store.find(asked.name));
        record = std::move(former.record);
    }
    const EnvUpdate command = completed(asked, record);
    if (!asked.python && record.asked_python.empty() && environments::is_brought(record.python)) {
        return Error(
            ErrorCode::kInvalidArgument,
            "it is not noted which Python " + asked.name + " was made of",
            "Name it with --python.");
    }
    BOOST_OUTCOME_TRY(auto order, make_order(command.name, *command.index, *command.python));
    for (const std::string& requirement : record.requirements) {
        order.requirements += requirement + "\n";
    }
    order.locked = record.locked;
    order.replaces = record.created_at;
    BOOST_OUTCOME_TRY(order.node, node_order_of(command, record.node));
    BOOST_OUTCOME_TRY(auto debian, debian_order_of(record.debian.wanted));
    debian.image_packages = std::move(order.debian.image_packages);
    order.debian = std::move(debian);
    return make_one(std::move(order), record.built, command.hosts, &EnvironmentStore::replace);
}

Status export_one(const std::string& name) {
    BOOST_OUTCOME_TRY(const EnvironmentStore store, open_environments());
    BOOST_OUTCOME_TRY(const NamedEnvironment one, store.find(name));
    print(env_requirements(one.record));
    return ok();
}

Status list_all(bool as_json) {
    BOOST_OUTCOME_TRY(const EnvironmentStore store, open_environments());
    BOOST_OUTCOME_TRY(const auto all, store.list());
    print(as_json ? env_json(all) : env_table(all));
    return ok();
}

Status show_one(const std::string& name, bool as_json) {
    BOOST_OUTCOME_TRY(const EnvironmentStore store, open_environments());
    BOOST_OUTCOME_TRY(const NamedEnvironment one, store.find(name));
    print(as_json ? env_json(one) : env_text(one));
    return ok();
}

Status remove_environment(const std::string& name) {
    BOOST_OUTCOME_TRY(EnvironmentStore store, open_environments());
    return store.remove(name);
}

std::string state_of(const NamedEnvironment& one) {
    if (!one.image) {
        return kDamaged;
    }
    return one.in_use ? "in use" : "not in use";
}

nlohmann::json model_of(const NamedEnvironment& one) {
    const environments::NamedRecord& record = one.record;
    return {
        {"name", record.name},
        {"kernel", environments::offered_name("python", record.name)},
        {"digest", record.digest},
        {"python", record.python},
        {"index", record.index},
        {"bytes", record.bytes},
        {"in_use", one.in_use},
        {"damaged", !one.image.has_value()},
        {"created_at", record.created_at},
        {"requirements", record.requirements},
        {"packages", record.packages},
        {"built_from_source", record.built},
        {"locked", record.locked},
        {"node_packages", record.node.packages},
        {"debian_packages", record.debian.packages},
        {"debian_scripts_not_run", record.debian.scripts_not_run},
        {"debian_release", record.debian.release},
        {"debian_image_packages", record.debian.image_packages}};
}

std::string node_text(const environments::NodeRecord& node) {
    if (node.wanted.empty()) {
        return {};
    }
    std::string text = node.locked ? "asked for, of " + node.registry + ", by a lock:\n"
                                   : "asked for, of " + node.registry + ":\n";
    for (const auto& [name, range] : node.wanted) {
        text += "  " + name + " " + range + "\n";
    }
    text += "packages of Node.js:\n";
    for (const auto& [place, version] : node.packages) {
        text += "  " + place + " " + version + "\n";
    }
    return text;
}

std::string debian_text(const environments::DebianRecord& debian) {
    if (debian.wanted.empty()) {
        return {};
    }
    std::string text = "asked for, of " + debian.release + ":\n";
    for (const std::string& package : debian.wanted) {
        text += "  " + package + "\n";
    }
    text += debian.image_packages.empty() ? "packages of Debian (besides those of every session):\n"
                                          : "packages of Debian (besides those of every session, " +
                                                debian.image_packages + "):\n";
    for (const auto& [name, version] : debian.packages) {
        const auto& unrun = debian.scripts_not_run;
        const bool noted = std::find(unrun.begin(), unrun.end(), name) != unrun.end();
        text += "  " + name + " " + version + (noted ? " (its setup script was not run)\n" : "\n");
    }
    return text;
}

}  // namespace

std::string env_table(const std::vector<NamedEnvironment>& all) {
    using Row = std::array<std::string, 7>;
    std::vector<Row> rows = {{"NAME", "KERNEL", "PYTHON", "PACKAGES", "MIB", "STATE", "MADE"}};
    for (const NamedEnvironment& one : all) {
        const environments::NamedRecord& record = one.record;
        rows.push_back(
            {record.name,
             environments::offered_name("python", record.name),
             record.python,
             std::to_string(
                 record.packages.size() + record.node.packages.size() +
                 record.debian.packages.size()),
             std::to_string(record.bytes >> 20U),
             state_of(one),
             record.created_at.substr(0, record.created_at.find('.'))});
    }
    std::array<std::size_t, 7> widest{};
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            widest[i] = std::max(widest[i], row[i].size());
        }
    }
    std::string text;
    for (Row& row : rows) {
        for (std::size_t i = 0; i + 1 < row.size(); ++i) {
            row[i].resize(widest[i] + 2, ' ');
            text += row[i];
        }
        text += row.back() + "\n";
    }
    return text;
}

std::string env_text(const NamedEnvironment& one) {
    const environments::NamedRecord& record = one.record;
    std::string text = "name:    " + record.name + "\n";
    text += "kernel:  " + environments::offered_name("python", record.name) + "\n";
    text += "python:  " + record.python + "\n";
    text += "index:   " + record.index + "\n";
    text += "digest:  " + record.digest + "\n";
    text += "state:   " + state_of(one) + "\n";
    text += "made:    " + record.created_at + "\n";
    text += record.locked ? "asked for, by a lock:\n" : "asked for:\n";
    for (const std::string& requirement : record.requirements) {
        text += "  " + environments::without_hashes(requirement) + "\n";
    }
    text += environments::is_brought(record.python)
                ? "packages (those of the kernel itself, too):\n"
                : "packages (besides those of the default environment):\n";
    for (const auto& [name, version] : record.packages) {
        const bool built =
            std::find(record.built.begin(), record.built.end(), name) != record.built.end();
        text += "  " + name + " " + version + (built ? " (built from source)\n" : "\n");
    }
    return text + node_text(record.node) + debian_text(record.debian);
}

std::string env_json(const std::vector<NamedEnvironment>& all) {
    nlohmann::json list = nlohmann::json::array();
    for (const NamedEnvironment& one : all) {
        list.push_back(model_of(one));
    }
    return list.dump(2) + "\n";
}

std::string env_json(const NamedEnvironment& one) {
    return model_of(one).dump(2) + "\n";
}

std::string env_requirements(const environments::NamedRecord& record) {
    std::string text = "# The environment " + record.name + ", Python " + record.python +
                       ", made of " + record.index + " at " + record.created_at + "\n";
    for (const std::string& name : record.built) {
        text += "# built from source: " + name + "\n";
    }
    for (const auto& [name, version] : record.debian.packages) {
        text += "# of " + record.debian.release + ": " + name + "=" + version + "\n";
    }
    for (const auto& [name, version] : record.packages) {
        text += name + "==" + version + "\n";
    }
    return text;
}

std::string chosen_python(const EnvCreate& command, const std::optional<std::string>& of_file) {
    return command.python.value_or(of_file.value_or(environments::kPythonVersion));
}

EnvUpdate completed(EnvUpdate command, const environments::NamedRecord& record) {
    if (!command.index) {
        command.index = record.index == environments::kDefaultIndex ? "" : record.index;
    }
    if (!command.node_registry) {
        const std::string& registry = record.node.registry;
        command.node_registry = registry == environments::kDefaultRegistry ? "" : registry;
    }
    if (!command.python) {
        // Debian's is that of this machine, whichever it was when the environment was made.
        const bool brought = environments::is_brought(record.python);
        const std::string& asked =
            record.asked_python.empty() ? record.python : record.asked_python;
        command.python = brought ? asked : environments::kPythonVersion;
    }
    return command;
}

int env_create(const EnvCreate& command) {
    return report_outcome(create_one(command));
}

int env_list(bool as_json) {
    return report_outcome(list_all(as_json));
}

int env_show(const std::string& name, bool as_json) {
    return report_outcome(show_one(name, as_json));
}

int env_update(const EnvUpdate& command) {
    return report_outcome(update_one(command));
}

int env_export(const std::string& name) {
    return report_outcome(export_one(name));
}

int env_remove(const std::string& name) {
    return report_outcome(remove_environment(name));
}

}  // namespace cellkeep::cli
