// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/passing/passed_specs.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

template <typename T>
json number_or_null(const std::optional<T>& value) {
    return value ? json(*value) : json();
}

json time_or_null(const std::optional<milliseconds>& value) {
    return value ? json(value->count()) : json();
}

template <typename T>
std::optional<T> find_number(const json& text, const char* name) {
    const json& value = text.at(name);
    return value.is_null() ? std::nullopt : std::optional(value.get<T>());
}

std::optional<milliseconds> find_time(const json& text, const char* name) {
    const auto value = find_number<std::int64_t>(text, name);
    return value ? std::optional(milliseconds(*value)) : std::nullopt;
}

json write_paths(const std::vector<sandbox::ReadOnlyPath>& paths) {
    json all = json::array();
    for (const sandbox::ReadOnlyPath& path : paths) {
        all.push_back(
            {{"source", path.source},
             {"target", path.target},
             {"executable", path.executable},
             {"optional", path.optional},
             {"shared", path.shared}});
        // A program that knows none does without it: the sandbox is there already, and nothing of
        // a passed session is mounted again.
        if (!path.over.empty()) {
            all.back()["over"] = path.over;
        }
    }
    return all;
}

std::vector<sandbox::ReadOnlyPath> read_paths(const json& text) {
    std::vector<sandbox::ReadOnlyPath> paths;
    for (const json& one : text) {
        sandbox::ReadOnlyPath path;
        path.source = one.at("source").get<std::string>();
        path.target = one.at("target").get<std::string>();
        path.executable = one.at("executable").get<bool>();
        path.optional = one.at("optional").get<bool>();
        path.shared = one.at("shared").get<bool>();
        path.over = one.value("over", "");
        paths.push_back(std::move(path));
    }
    return paths;
}

}  // namespace

json write_spec(const KernelSpec& spec, SharedParts& shared) {
    json images = json::array();
    for (const sandbox::PrivateImage& image : spec.images) {
        images.push_back(
            {{"root", image.root}, {"digest", image.digest}, {"format", image.format}});
    }
    json leases = json::array();
    for (const auto& lease : spec.leases) {
        leases.push_back(shared.add(lease));
    }
    return {
        {"language", spec.language},
        {"display_name", spec.display_name},
        {"argv", spec.argv},
        {"env", spec.env},
        {"read_only", write_paths(spec.read_only)},
        {"images", std::move(images)},
        {"leases", std::move(leases)},
        {"environment", spec.environment.name},
        {"digest", spec.environment.digest},
        {"forkable", spec.forkable},
        {"debugger", spec.debugger},
        {"folder", spec.folder},
        {"language_info", spec.language_info}};
}

KernelSpec read_spec(const json& text, const SharedAgain& shared) {
    KernelSpec spec;
    spec.language = text.at("language").get<std::string>();
    spec.display_name = text.at("display_name").get<std::string>();
    spec.argv = text.at("argv").get<std::vector<std::string>>();
    spec.env = text.at("env").get<std::vector<std::string>>();
    spec.read_only = read_paths(text.at("read_only"));
    for (const json& image : text.at("images")) {
        spec.images.push_back(
            {image.at("root").get<std::string>(),
             image.at("digest").get<std::string>(),
             image.at("format").get<std::string>()});
    }
    for (const json& lease : text.at("leases")) {
        const auto place = lease.get<std::size_t>();
        if (place < shared.leases.size()) {
            spec.leases.push_back(shared.leases[place]);
        }
    }
    spec.environment = {
        text.at("environment").get<std::string>(), text.at("digest").get<std::string>()};
    spec.forkable = text.at("forkable").get<bool>();
    spec.debugger = text.at("debugger").get<bool>();
    spec.folder = text.at("folder").get<std::string>();
    spec.language_info = text.at("language_info");
    return spec;
}

json write_catalog(const KernelCatalog& catalog, SharedParts& shared) {
    json specs = json::array();
    for (const std::string& language : catalog.languages()) {
        specs.push_back(write_spec(*catalog.find(language), shared));
    }
    json absent = json::array();
    for (const NotOffered& one : catalog.not_offered()) {
        absent.push_back({{"language", one.language}, {"reason", one.reason}, {"hint", one.hint}});
    }
    return {{"specs", std::move(specs)}, {"not_offered", std::move(absent)}};
}

KernelCatalog read_catalog(const json& text, const SharedAgain& shared) {
    KernelCatalog catalog;
    for (const json& spec : text.at("specs")) {
        catalog.add(read_spec(spec, shared));
    }
    for (const json& one : text.at("not_offered")) {
        catalog.withhold(
            {one.at("language").get<std::string>(),
             one.at("reason").get<std::string>(),
             one.at("hint").get<std::string>()});
    }
    return catalog;
}

json write_limits(const SessionLimits& limits) {
    return {
        {"cpu_cores", limits.cpu_cores},
        {"memory_mb", limits.memory_mb},
        {"disk_mb", limits.disk_mb},
        {"processes", limits.processes},
        {"wall", limits.wall.count()},
        {"cpu", limits.cpu.count()},
        {"output_bytes", limits.output_bytes},
        {"artifact_bytes", limits.artifact_bytes},
        {"executions", number_or_null(limits.executions)},
        {"total_wall", time_or_null(limits.total_wall)},
        {"total_cpu", time_or_null(limits.total_cpu)},
        {"total_output_bytes", number_or_null(limits.total_output_bytes)},
        {"total_artifact_bytes", number_or_null(limits.total_artifact_bytes)},
        {"consecutive_failures", number_or_null(limits.consecutive_failures)},
        {"idle", limits.idle.count()},
        {"lifetime", limits.lifetime.count()}};
}

SessionLimits read_limits(const json& text) {
    SessionLimits limits;
    limits.cpu_cores = text.at("cpu_cores").get<double>();
    limits.memory_mb = text.at("memory_mb").get<std::uint64_t>();
    limits.disk_mb = text.at("disk_mb").get<std::uint64_t>();
    limits.processes = text.at("processes").get<std::uint32_t>();
    limits.wall = milliseconds(text.at("wall").get<std::int64_t>());
    limits.cpu = milliseconds(text.at("cpu").get<std::int64_t>());
    limits.output_bytes = text.at("output_bytes").get<std::uint64_t>();
    limits.artifact_bytes = text.at("artifact_bytes").get<std::uint64_t>();
    limits.executions = find_number<std::uint64_t>(text, "executions");
    limits.total_wall = find_time(text, "total_wall");
    limits.total_cpu = find_time(text, "total_cpu");
    limits.total_output_bytes = find_number<std::uint64_t>(text, "total_output_bytes");
    limits.total_artifact_bytes = find_number<std::uint64_t>(text, "total_artifact_bytes");
    limits.consecutive_failures = find_number<std::uint32_t>(text, "consecutive_failures");
    limits.idle = seconds(text.at("idle").get<std::int64_t>());
    limits.lifetime = seconds(text.at("lifetime").get<std::int64_t>());
    return limits;
}

json write_options(const SessionOptions& options) {
    return {
        {"kernel_id", options.kernel_id},
        {"working_directory", options.working_directory},
        {"cull_connected", options.cull.connected},
        {"cull_busy", options.cull.busy},
        {"language", options.language},
        {"environment", options.environment},
        {"limits", write_limits(options.limits)},
        {"env", options.env},
        {"metadata", options.metadata},
        {"auto_checkpoints", static_cast<int>(options.auto_checkpoints)},
        {"branches", options.branches},
        {"owner", options.owner}};
}

SessionOptions read_options(const json& text) {
    SessionOptions options;
    options.kernel_id = text.at("kernel_id").get<std::string>();
    options.working_directory = text.at("working_directory").get<std::string>();
    options.cull.connected = text.at("cull_connected").get<bool>();
    options.cull.busy = text.at("cull_busy").get<bool>();
    options.language = text.at("language").get<std::string>();
    options.environment = text.at("environment").get<std::string>();
    options.limits = read_limits(text.at("limits"));
    options.env = text.at("env").get<std::map<std::string, std::string>>();
    options.metadata = text.at("metadata");
    options.auto_checkpoints =
        static_cast<checkpoint::AutoCheckpoints>(text.at("auto_checkpoints").get<int>());
    options.branches = text.at("branches").get<bool>();
    options.owner = text.at("owner").get<std::string>();
    return options;
}

}  // namespace cellkeep::session
