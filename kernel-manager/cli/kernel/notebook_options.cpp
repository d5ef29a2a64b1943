// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/kernel/notebook_options.hpp"

#include "kernel-manager/cli/run/console.hpp"
#include "kernel-manager/cli/serve/service_setup.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

namespace cellkeep::cli {

namespace fs = std::filesystem;

namespace {

/// The user's own machine: he may ask for all of it, and his cells may take as long as they take.
session::LimitCeilings notebook_ceilings() {
    constexpr std::chrono::hours kYears{24 * 365 * 10};
    session::LimitCeilings ceilings;
    ceilings.memory_mb = 16ULL << 20U;
    ceilings.disk_mb = 1ULL << 20U;
    ceilings.wall = kYears;
    ceilings.cpu = kYears;
    ceilings.idle = kYears;
    ceilings.lifetime = kYears;
    return ceilings;
}

template <typename T>
void add_argument(
    std::vector<std::string>& arguments, const char* flag, const std::optional<T>& value) {
    if (value.has_value()) {
        std::ostringstream text;
        text << *value;
        arguments.emplace_back(flag);
        arguments.push_back(text.str());
    }
}

bool holds(const fs::path& directory, const fs::path& inner) {
    const fs::path relative = inner.lexically_relative(directory);
    return !relative.empty() && *relative.begin() != "..";
}

/// What is shared of where the kernel was started; "" if nothing.
Result<std::string> choose_shared_directory() {
    std::error_code error;
    const fs::path directory = fs::canonical(".", error);
    if (error) {
        return Error::from_errno(error.value(), "the directory the kernel was started in");
    }
    // NOLINTNEXTLINE(concurrency-mt-unsafe): read once at start, before any other thread exists.
    const char* variable = std::getenv("HOME");
    const fs::path home = fs::weakly_canonical(variable == nullptr ? "" : variable, error);
    if (const auto objection = objection_to_sharing(directory.string(), home.string())) {
        print_error("cellkeep: " + directory.string() + " is not shared: " + *objection + "\n");
        return std::string();
    }
    return directory.string();
}

void share_directory(
    session::KernelCatalog& catalog, const std::string& language, const std::string& directory) {
    const session::KernelSpec* known = catalog.find(language);
    if (known == nullptr || directory.empty()) {
        return;  // the service reports it
    }
    session::KernelSpec spec = *known;
    spec.read_only.push_back(
        {.source = directory, .target = kSharedDirectoryPath, .executable = false, .shared = true});
    catalog.add(std::move(spec));
}

}  // namespace

std::vector<std::string> to_arguments(const NotebookOptions& options) {
    const NotebookOptions defaults;
    std::vector<std::string> arguments;
    if (options.language != defaults.language) {
        arguments.insert(arguments.end(), {"--language", options.language});
    }
    add_argument(arguments, "--cpu-cores", options.cpu_cores);
    add_argument(arguments, "--memory-mb", options.memory_mb);
    add_argument(arguments, "--disk-mb", options.disk_mb);
    add_argument(arguments, "--processes", options.processes);
    if (options.share_cwd != defaults.share_cwd) {
        arguments.insert(arguments.end(), {"--share-cwd", options.share_cwd});
    }
    if (options.while_preparing != defaults.while_preparing) {
        arguments.insert(arguments.end(), {"--while-preparing", options.while_preparing});
    }
    for (const std::string& control : options.allow_degraded) {
        arguments.insert(arguments.end(), {"--allow-degraded", control});
    }
    for (const std::string& directory : options.kernels) {
        arguments.insert(arguments.end(), {"--kernels", directory});
    }
    return arguments;
}

Result<ShareDirectory> parse_share_directory(const std::string& text) {
    if (text == "none") {
        return ShareDirectory::kNone;
    }
    if (text == "ro") {
        return ShareDirectory::kReadOnly;
    }
    return Error(ErrorCode::kInvalidArgument, "--share-cwd: \"" + text + "\" is not none or ro");
}

std::optional<std::string> objection_to_sharing(
    const std::string& directory, const std::string& home) {
    const fs::path path = fs::path(directory).lexically_normal();
    if (path == path.root_path()) {
        return "it is the whole file system";
    }
    const fs::path own = fs::path(home).lexically_normal();
    if (!own.empty() && holds(path, own)) {
        return "your home directory, with what is private in it, would be seen inside";
    }
    return std::nullopt;
}

Result<session::ServiceConfig> make_notebook_service(const NotebookOptions& options) {
    BOOST_OUTCOME_TRY(const ShareDirectory share, parse_share_directory(options.share_cwd));
    BOOST_OUTCOME_TRY(
        session::ServiceConfig config,
        make_service_config(1, options.allow_degraded, kAutomaticImage, options.kernels));
    config.ceilings = notebook_ceilings();
    if (share == ShareDirectory::kReadOnly) {
        BOOST_OUTCOME_TRY(const std::string directory, choose_shared_directory());
        share_directory(config.catalog, options.language, directory);
    }
    return config;
}

Result<ServiceStart> begin_notebook_service(const NotebookOptions& options) {
    BOOST_OUTCOME_TRY(const ShareDirectory share, parse_share_directory(options.share_cwd));
    ServiceRequest request;
    request.allow_degraded = options.allow_degraded;
    request.kernels = options.kernels;
    BOOST_OUTCOME_TRY(request.while_preparing, parse_while_preparing(options.while_preparing));
    BOOST_OUTCOME_TRY(ServiceStart start, begin_service(request));
    start.config.ceilings = notebook_ceilings();
    if (share == ShareDirectory::kNone) {
        return start;
    }
    BOOST_OUTCOME_TRY(const std::string directory, choose_shared_directory());
    share_directory(start.config.catalog, options.language, directory);
    if (start.of_host) {
        share_directory(*start.of_host, options.language, directory);
    }
    if (start.load) {
        start.load = [load = start.load,
                      language = options.language,
                      directory]() -> Result<session::KernelCatalog> {
            BOOST_OUTCOME_TRY(session::KernelCatalog catalog, load());
            share_directory(catalog, language, directory);
            return catalog;
        };
    }
    return start;
}

session::SessionOptions make_notebook_session(
    const NotebookOptions& options, const session::LimitCeilings& ceilings) {
    session::SessionOptions session;
    session.language = options.language;
    session.owner = "notebook";
    session.limits = session::notebook_limits(ceilings);
    session.limits.cpu_cores = options.cpu_cores.value_or(session.limits.cpu_cores);
    session.limits.memory_mb = options.memory_mb.value_or(session.limits.memory_mb);
    session.limits.disk_mb = options.disk_mb.value_or(session.limits.disk_mb);
    session.limits.processes = options.processes.value_or(session.limits.processes);
    return session;
}

}  // namespace cellkeep::cli
