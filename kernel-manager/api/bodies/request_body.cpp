// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/request_body.hpp"

#include "kernel-manager/api/bodies/checkpoint_body.hpp"
#include "kernel-manager/api/bodies/language_choice.hpp"
#include "kernel-manager/api/bodies/network_body.hpp"
#include "kernel-manager/api/bodies/tool_body.hpp"
#include "kernel-manager/environments/name.hpp"
#include "kernel-manager/service/options_check.hpp"
#include "protocol/base64.hpp"
#include "protocol/limits.hpp"
#include "protocol/message.hpp"
#include "protocol/sha256.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::api {

namespace {

constexpr std::size_t kNameBytesMax = 128;
constexpr std::string_view kCeiling = "the server's ceiling";

std::uint64_t count(std::chrono::milliseconds time) {
    return static_cast<std::uint64_t>(time.count());
}

std::uint64_t count(std::chrono::seconds time) {
    return static_cast<std::uint64_t>(time.count());
}

/// Budgets may be null: none.
void read_budgets(ObjectReader& reader, session::SessionLimits& limits) {
    constexpr auto kLongest = static_cast<std::uint64_t>(session::kLimitTimeMax.count());
    const auto read = [&reader](const char* name, auto& target, std::uint64_t most) {
        using Target = typename std::remove_reference_t<decltype(target)>::value_type;
        const nlohmann::json* value = reader.any(name);
        if (value == nullptr || value->is_null()) {
            return;
        }
        if (const auto number = reader.integer(name, {1, most, kCeiling})) {
            target = Target(*number);
        }
    };
    read("executions", limits.executions, UINT64_MAX);
    read("total_wall_ms", limits.total_wall, kLongest);
    read("total_cpu_ms", limits.total_cpu, kLongest);
    read("total_output_bytes", limits.total_output_bytes, UINT64_MAX);
    read("total_artifact_bytes", limits.total_artifact_bytes, UINT64_MAX);
}

void read_limits(
    ObjectReader& parent,
    const session::LimitCeilings& ceilings,
    session::SessionLimits& limits,
    FieldErrors& errors) {
    const nlohmann::json* value = parent.object("limits");
    if (value == nullptr) {
        return;
    }
    ObjectReader reader(*value, child_pointer(parent.pointer(), "limits"), errors);
    const auto read = [&reader](const char* name, auto& target, IntegerBounds bounds) {
        using Target = std::remove_reference_t<decltype(target)>;
        bounds.source = kCeiling;
        if (const auto number = reader.integer(name, bounds)) {
            target = static_cast<Target>(*number);
        }
    };
    if (const auto cores = reader.number("cpu_cores", session::kCpuCoresMin, ceilings.cpu_cores)) {
        limits.cpu_cores = *cores;
    }
    read("memory_mb", limits.memory_mb, {session::kMemoryMbMin, ceilings.memory_mb, {}});
    read("disk_mb", limits.disk_mb, {session::kDiskMbMin, ceilings.disk_mb, {}});
    read("processes", limits.processes, {session::kProcessesMin, ceilings.processes, {}});
    read(
        "output_bytes", limits.output_bytes, {session::kOutputBytesMin, ceilings.output_bytes, {}});
    read("artifact_bytes", limits.artifact_bytes, {0, ceilings.artifact_bytes, {}});
    std::uint64_t wall = count(limits.wall);
    std::uint64_t cpu = count(limits.cpu);
    std::uint64_t idle = count(limits.idle);
    std::uint64_t lifetime = count(limits.lifetime);
    read("wall_ms", wall, {1, count(ceilings.wall), {}});
    read("cpu_ms", cpu, {1, count(ceilings.cpu), {}});
    read("idle_s", idle, {1, count(ceilings.idle), {}});
    read("lifetime_s", lifetime, {1, count(ceilings.lifetime), {}});
    limits.wall = std::chrono::milliseconds(static_cast<std::int64_t>(wall));
    limits.cpu = std::chrono::milliseconds(static_cast<std::int64_t>(cpu));
    limits.idle = std::chrono::seconds(static_cast<std::int64_t>(idle));
    limits.lifetime = std::chrono::seconds(static_cast<std::int64_t>(lifetime));
    read_budgets(reader, limits);
    if (const auto failures =
            reader.integer("consecutive_failures", {0, ceilings.consecutive_failures, kCeiling})) {
        limits.consecutive_failures = static_cast<std::uint32_t>(*failures);
    }
    reader.finish();
}

/// `from` and `sha256`: a file of the operator's inputs directory.
void read_reference(ObjectReader& reader, session::InputFile& file) {
    if (const auto from = reader.text("from", 4095)) {
        const auto parsed = sandbox::parse_workspace_path(*from);
        if (parsed.has_error() || parsed.value().empty()) {
            reader.fail("from", "must be a relative path without . and .. that names a file");
        } else {
            file.from = parsed.value();
        }
    }
    if (const auto digest = reader.text("sha256", 64)) {
        const bool valid = digest->size() == 64 &&
                           digest->find_first_not_of("0123456789abcdef") == std::string::npos;
        if (!valid) {
            reader.fail("sha256", "must be 64 lower-case hexadecimal digits");
        } else if (!reader.has("from")) {
            reader.fail("sha256", "belongs to \"from\"");
        }
        file.sha256 = *digest;
    }
}

std::optional<session::InputFile> read_file(
    const nlohmann::json& value, std::string pointer, FieldErrors& errors) {
    ObjectReader reader(value, std::move(pointer), errors);
    const std::size_t before = errors.size();
    session::InputFile file;
    if (auto path = reader.text("path", 4095)) {
        const auto parsed = sandbox::parse_workspace_path(*path);
        if (parsed.has_error()) {
            reader.fail("path", parsed.error().message());
        } else if (parsed.value().empty()) {
            reader.fail("path", "must name a file");
        } else {
            file.path = parsed.value();
        }
    } else if (value.is_object() && !reader.has("path")) {
        reader.fail("path", "is required");
    }
    const auto text = reader.text("text", limits::kHttpBodyBytesMax);
    const auto base64 = reader.text("base64", limits::kHttpBodyBytesMax);
    read_reference(reader, file);
    const int sources = static_cast<int>(reader.has("text")) +
                        static_cast<int>(reader.has("base64")) +
                        static_cast<int>(reader.has("from"));
    if (value.is_object() && sources != 1) {
        reader.fail("", "must have one of \"text\", \"base64\" and \"from\"");
    }
    if (text) {
        file.bytes = *text;
    }
    if (base64) {
        auto bytes = protocol::decode_base64(*base64);
        if (!bytes) {
            reader.fail("base64", "is not base64 (RFC 4648, with padding and without white space)");
        } else {
            file.bytes = std::move(*bytes);
        }
    }
    reader.finish();
    if (errors.size() != before) {
        return std::nullopt;
    }
    return file;
}

void read_files(ObjectReader& parent, std::vector<session::InputFile>& files, FieldErrors& errors) {
    const nlohmann::json* value = parent.array("files");
    if (value == nullptr) {
        return;
    }
    if (value->size() > limits::kFilesPerRequestMax) {
        parent.fail(
            "files",
            "must have at most " + std::to_string(limits::kFilesPerRequestMax) + " entries");
        return;
    }
    const std::string pointer = child_pointer(parent.pointer(), "files");
    for (std::size_t i = 0; i < value->size(); ++i) {
        if (auto file = read_file((*value)[i], child_pointer(pointer, std::to_string(i)), errors)) {
            files.push_back(std::move(*file));
        }
    }
}

void read_metadata(ObjectReader& reader, nlohmann::json& target) {
    if (const nlohmann::json* metadata = reader.object("metadata")) {
        if (protocol::dump_json(*metadata).size() > limits::kMetadataBytesMax) {
            reader.fail(
                "metadata",
                "must be at most " + std::to_string(limits::kMetadataBytesMax) + " bytes as JSON");
        }
        target = *metadata;
    }
}

void read_session_fields(
    ObjectReader& reader,
    const Offer& offer,
    session::SessionOptions& options,
    FieldErrors& errors) {
    if (auto language = read_language(reader, offer)) {
        options.language = std::move(*language);
    }
    if (auto environment = reader.text("environment", kNameBytesMax)) {
        // Which there are the service knows.
        if (*environment != environments::kDefaultEnvironment &&
            environments::check_name(*environment).has_error()) {
            reader.fail("environment", "is no name of an environment");
        }
        options.environment = std::move(*environment);
    }
    read_limits(reader, offer.ceilings, options.limits, errors);
    options.network = read_network(reader, errors);
    read_env(reader, options.env, errors);
    read_files(reader, options.files, errors);
    read_metadata(reader, options.metadata);
}

void read_execution_fields(
    ObjectReader& reader, const IntegerBounds& timeout_bounds, ExecutionOrder& order) {
    session::ExecutionRequest& request = order.request;
    if (auto code = reader.text("code", limits::kCodeBytesMax)) {
        request.code = std::move(*code);
    } else if (!reader.has("code")) {
        reader.fail("code", "is required");
    }
    request.stdin_text = reader.text("stdin", limits::kStdinBytesMax).value_or("");
    request.reasoning = reader.text("reasoning", limits::kMetadataBytesMax).value_or("");
    request.idempotency_key =
        reader.text("idempotency_key", limits::kIdempotencyKeyBytesMax).value_or("");
    order.outputs = reader.boolean("outputs").value_or(false);
    if (const auto choice = reader.text("on_disconnect", kNameBytesMax)) {
        order.interrupt_on_disconnect = *choice == "interrupt";
        if (*choice != "interrupt" && *choice != "continue") {
            reader.fail("on_disconnect", "must be \"continue\" or \"interrupt\"");
        }
    }
    if (const auto timeout = reader.integer("timeout_ms", timeout_bounds)) {
        request.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(*timeout));
    }
}

/// Of the body without what does not change the run.
std::string digest_of_run(nlohmann::json body) {
    for (const char* name :
         {"idempotency_key", "cache_ttl_s", "outputs", "on_disconnect", "reasoning", "metadata"}) {
        body.erase(name);
    }
    return protocol::sha256_hex(protocol::dump_json(body));
}

}  // namespace

void read_env(ObjectReader& parent, std::map<std::string, std::string>& env, FieldErrors& errors) {
    const nlohmann::json* value = parent.object("env");
    if (value == nullptr) {
        return;
    }
    if (value->size() > limits::kEnvironmentVariablesMax) {
        parent.fail(
            "env",
            "must have at most " + std::to_string(limits::kEnvironmentVariablesMax) + " variables");
        return;
    }
    std::size_t bytes = 0;
    const std::string pointer = child_pointer(parent.pointer(), "env");
    for (const auto& [name, field] : value->items()) {
        const std::string where = child_pointer(pointer, name);
        if (!session::is_variable_name(name)) {
            errors.push_back({where, "is not the name of an environment variable"});
            continue;
        }
        if (!field.is_string()) {
            errors.push_back({where, "must be a string"});
            continue;
        }
        const auto& text = field.get_ref<const std::string&>();
        if (text.find('\0') != std::string::npos) {
            errors.push_back({where, "must not contain NUL"});
            continue;
        }
        bytes += name.size() + text.size() + 2;
        env.emplace(name, text);
    }
    if (bytes > limits::kEnvironmentBytesMax) {
        parent.fail(
            "env", "must be at most " + std::to_string(limits::kEnvironmentBytesMax) + " bytes");
    }
}

Offer offer_of(const session::SessionService& backend) {
    return {backend.languages(), backend.ceilings(), backend.not_offered()};
}

session::SessionOptions parse_session_options(
    const nlohmann::json& body, const Offer& offer, FieldErrors& errors) {
    session::SessionOptions options;
    ObjectReader reader(body, "", errors);
    read_session_fields(reader, offer, options, errors);
    const CheckpointChoices checkpoints = read_checkpoint_choices(reader, errors);
    options.auto_checkpoints = checkpoints.automatic;
    options.branches = checkpoints.branches;
    reader.finish();
    return options;
}

SessionOrder parse_session_order(
    const nlohmann::json& body, const Offer& offer, FieldErrors& errors) {
    SessionOrder order;
    if (!body.is_object() || !body.contains("from")) {
        order.options = parse_session_options(body, offer, errors);
        return order;
    }
    ObjectReader reader(body, "", errors);
    order.from = read_state(reader, errors);
    order.label = reader.text("label", limits::kCheckpointLabelBytesMax);
    if (order.label && order.label->empty()) {
        reader.fail("label", "must not be empty");
    }
    reader.finish();
    return order;
}

ExecutionOrder parse_execution(
    const nlohmann::json& body, const session::OfferedLanguages& running, FieldErrors& errors) {
    ExecutionOrder order;
    ObjectReader reader(body, "", errors);
    if (!body.is_object()) {
        return order;
    }
    // The session compares it with its own limit, which may have been lowered since a request that
    // comes again with its idempotency key was first accepted.
    read_execution_fields(reader, {1, count(session::LimitCeilings().wall), "the maximum"}, order);
    read_metadata(reader, order.request.metadata);
    read_files(reader, order.request.files, errors);
    order.request.language = read_language(reader, running).value_or("");
    read_tools(reader, order.request.tools, errors);
    reader.finish();
    return order;
}

std::optional<std::string> parse_language_choice(
    const nlohmann::json& body, const session::OfferedLanguages& running, FieldErrors& errors) {
    ObjectReader reader(body, "", errors);
    if (!body.is_object()) {
        return std::nullopt;
    }
    auto language = read_language(reader, running);
    reader.finish();
    return language;
}

OneShotOrder parse_one_shot(const nlohmann::json& body, const Offer& offer, FieldErrors& errors) {
    OneShotOrder order;
    ObjectReader reader(body, "", errors);
    if (!body.is_object()) {
        return order;
    }
    read_session_fields(reader, offer, order.options, errors);
    read_execution_fields(
        reader,
        {1, count(order.options.limits.wall), "the session's limit wall_ms"},
        order.execution);
    order.execution.request.metadata = order.options.metadata;
    const IntegerBounds ttl{0, count(limits::kCacheTtlMax), "the maximum"};
    if (const auto seconds = reader.integer("cache_ttl_s", ttl)) {
        order.cache_ttl = std::chrono::seconds(static_cast<std::int64_t>(*seconds));
    }
    if (order.cache_ttl.count() > 0 || !order.execution.request.idempotency_key.empty()) {
        order.digest = digest_of_run(body);
    }
    if (order.cache_ttl.count() > 0 && order.options.network.mode != egress::NetworkMode::kNone) {
        reader.fail("cache_ttl_s", "is for runs without a network");
    }
    reader.finish();
    return order;
}

}  // namespace cellkeep::api
