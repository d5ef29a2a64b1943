// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/named_environments.hpp"

#include "kernel-manager/environments/debian/debian_host.hpp"
#include "kernel-manager/environments/name.hpp"
#include "kernel-manager/environments/python_tree.hpp"
#include "kernel-manager/languages/system_packages.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace cellkeep::session {

namespace {

constexpr const char* kPython = "python";

std::string inside_environment(const std::string& name) {
    return "/opt/cellkeep/environments/" + name;
}

/// Where Node.js looks for packages besides the folders of the code that asks (its documentation,
/// "Loading from the global folders").
constexpr const char* kNodePath = "NODE_PATH=";

bool has_node_packages(const environments::NamedRecord& record) {
    return !record.node.packages.empty();
}

std::string node_modules(const std::string& inside) {
    return inside + environments::kNodeFolder + environments::kNodeModules;
}

/// A part of PATH.
std::string node_programs(const environments::NamedRecord& record, const std::string& inside) {
    return has_node_packages(record) ? node_modules(inside) + "/.bin:" : "";
}

/// The kernel's half in C++ for a Python that it does not embed: beside the program that embeds
/// one.
constexpr const char* kHostModule = "cellkeep-host.abi3.so";
/// Its start (kernels/python/cellkeep_kernel/hosted.py), beneath CELLKEEP_PYTHONPATH.
constexpr const char* kHostedStart = "/cellkeep_kernel/hosted.py";

std::string beside(const std::string& path, const char* name) {
    return std::filesystem::path(path).replace_filename(name).string();
}

std::string variable_of(const KernelSpec& spec, std::string_view name) {
    for (const std::string& entry : spec.env) {
        if (entry.starts_with(name) && entry.substr(name.size()).starts_with('=')) {
            return entry.substr(name.size() + 1);
        }
    }
    return {};
}

/// The kernel is a module of the Python that the environment brings.
void start_in_own_python(
    KernelSpec& spec, const std::string& inside, const image::ImageInUse& files) {
    const std::string program = spec.argv.at(0);
    const std::string module = beside(program, kHostModule);
    for (sandbox::ReadOnlyPath& path : spec.read_only) {
        if (path.target == program) {
            path.source = beside(path.source, kHostModule);
            path.target = module;
        }
    }
    spec.read_only.push_back(
        {.source = files.root + environments::kInterpreterFolder,
         .target = environments::kInterpreterInside});
    // What each flag is for: hosted.py.
    spec.argv = {
        inside + "/bin/python",
        "-I",
        "-B",
        "-X",
        "utf8",
        variable_of(spec, "CELLKEEP_PYTHONPATH") + kHostedStart,
        module};
    spec.debugger = true;
}

/// Packages that are beside those of Debian's Python are for its version alone, and there is none
/// of another version to start.
Status check_python(const environments::NamedRecord& record) {
    if (environments::is_brought(record.python) || record.python == environments::kPythonVersion) {
        return ok();
    }
    return Error(
        ErrorCode::kUnavailable,
        "it is of Debian's Python " + record.python + ", and that of this server is " +
            environments::kPythonVersion,
        "Make it again: cellkeep env update " + record.name);
}

/// The names of a language's environments, for people.
std::string environments_of(const KernelCatalog& catalog, const std::string& language) {
    std::string names(environments::kDefaultEnvironment);
    for (const std::string& name : catalog.languages()) {
        const KernelSpec& spec = *catalog.find(name);
        if (is_named(spec) && spec.language == language) {
            names += ", " + spec.environment.name;
        }
    }
    return names;
}

Error refuse_environment(
    const KernelCatalog& catalog, const KernelSpec& spec, const std::string& environment) {
    if (is_named(spec)) {
        return Error::in_field(
            ErrorCode::kInvalidArgument,
            "environment",
            "the kernel " + offered_by(spec) + " is of the environment " + spec.environment.name);
    }
    if (spec.language != kPython) {
        return Error::in_field(
            ErrorCode::kInvalidArgument,
            "environment",
            "the language " + spec.language + " has the environment default only",
            "Create the session without a language, and run code with \"language\": \"" +
                spec.language + "\": it has the environment's programs and packages of Node.js.");
    }
    const std::string kernel = environments::offered_name(kPython, environment);
    const auto& absent = catalog.not_offered();
    const auto known = std::find_if(absent.begin(), absent.end(), [&](const NotOffered& one) {
        return one.language == kernel;
    });
    const std::string why = known == absent.end() ? "" : ": " + describe(*known);
    return Error::in_field(
        ErrorCode::kInvalidArgument,
        "environment",
        environment + " is not offered" + why,
        "This server has: " + environments_of(catalog, kPython) +
            ". One that is made now is offered a moment later.");
}

}  // namespace

std::string offered_by(const KernelSpec& spec) {
    return environments::offered_name(spec.language, spec.environment.name);
}

bool is_named(const KernelSpec& spec) {
    return offered_by(spec) != spec.language;
}

KernelSpec make_named_spec(
    const KernelSpec& python,
    const environments::NamedRecord& record,
    const image::ImageInUse& files) {
    const std::string& name = record.name;
    const std::string& version = record.python;
    const std::string inside = inside_environment(name);
    const bool brought = environments::is_brought(version);
    KernelSpec spec = python;
    spec.display_name =
        "Python " + (brought ? version : std::string("3")) + " (Cellkeep, " + name + ")";
    for (std::string& variable : spec.env) {
        if (variable.starts_with("PATH=")) {
            variable.insert(
                std::string("PATH=").size(), inside + "/bin:" + node_programs(record, inside));
        } else if (variable.starts_with("CELLKEEP_ENVIRONMENT=")) {
            variable = "CELLKEEP_ENVIRONMENT=" + inside;
        }
    }
    if (has_node_packages(record)) {
        spec.env.push_back(kNodePath + node_modules(inside));
    }
    spec.read_only.push_back({.source = files.root + environments::kImageFolder, .target = inside});
    if (brought) {
        start_in_own_python(spec, inside, files);
    }
    add_system_packages(record, files, spec);
    spec.images.push_back({files.root, files.record.digest, "private copy"});
    spec.leases.push_back(files.lease);
    spec.environment = {name, files.record.digest};
    return spec;
}

Result<KernelSpec> find_named_spec(
    environments::EnvironmentStore& store,
    const KernelSpec& python,
    const environments::NamedEnvironment& environment) {
    BOOST_OUTCOME_TRY(check_python(environment.record));
    // Where there is no release, no environment of one fits.
    const auto release = environments::find_debian_release();
    BOOST_OUTCOME_TRY(check_system_packages(
        python, environment.record, release.has_value() ? release.value() : std::string()));
    BOOST_OUTCOME_TRY(const image::ImageInUse files, store.use(environment));
    KernelSpec spec = make_named_spec(python, environment.record, files);
    spec.remark = find_remark(python, environment.record);
    return spec;
}

Status offer_named_environments(environments::EnvironmentStore& store, KernelCatalog& catalog) {
    const KernelSpec* const found = catalog.find(kPython);
    if (found == nullptr) {
        return ok();
    }
    const KernelSpec python = *found;
    BOOST_OUTCOME_TRY(const auto all, store.list());
    for (const environments::NamedEnvironment& one : all) {
        const std::string& name = one.record.name;
        const std::string kernel = environments::offered_name(kPython, name);
        auto spec = find_named_spec(store, python, one);
        if (spec.has_error()) {
            catalog.withhold({kernel, spec.error().message(), spec.error().hint()});
        } else if (catalog.find(kernel) != nullptr) {
            catalog.withhold({kernel, "another language has this name", ""});
        } else {
            catalog.offer(std::move(spec).value());
        }
    }
    return ok();
}

Status offer_named_environments(KernelCatalog& catalog) {
    const auto directory = environments::default_environments_directory();
    std::error_code error;
    if (directory.has_error() || !std::filesystem::exists(directory.value(), error)) {
        return ok();  // there are none
    }
    BOOST_OUTCOME_TRY(auto store, environments::EnvironmentStore::open(directory.value()));
    return offer_named_environments(store, catalog);
}

Result<const KernelSpec*> choose_kernel(
    const KernelCatalog& catalog, const std::string& language, const std::string& environment) {
    const KernelSpec* const spec = catalog.find(language);
    if (spec == nullptr) {
        return catalog.refuse(language);
    }
    if (environments::offered_name(language, environment) == language ||
        spec->environment.name == environment) {
        return spec;
    }
    const KernelSpec* const named = catalog.find(environments::offered_name(kPython, environment));
    if (named == nullptr || named->language != language || named->environment.name != environment) {
        return refuse_environment(catalog, *spec, environment);
    }
    return named;
}

}  // namespace cellkeep::session
