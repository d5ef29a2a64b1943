// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/agent/request_body.hpp"

#include "kernel-manager/agent/base64.hpp"
#include "kernel-manager/session/options_check.hpp"
#include "protocol/limits.hpp"
#include "protocol/message.hpp"
#include "sandbox/workspace.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::agent {

namespace {

constexpr std::size_t kNameBytesMax = 128;
constexpr std::string_view kCeiling = "the server's ceiling";

std::string join(const std::vector<std::string>& names) {
    std::string joined;
    for (const std::string& name : names) {
        joined += (joined.empty() ? "" : ", ") + name;
    }
    return joined;
}

std::uint64_t count(std::chrono::milliseconds time) {
    return static_cast<std::uint64_t>(time.count());
}

std::uint64_t count(std::chrono::seconds time) {
    return static_cast<std::uint64_t>(time.count());
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
    if (const auto cores = reader.number("cpu_cores", 0.05, ceilings.cpu_cores)) {
        limits.cpu_cores = *cores;
    }
    read("memory_mb", limits.memory_mb, {32, ceilings.memory_mb, {}});
    read("disk_mb", limits.disk_mb, {1, ceilings.disk_mb, {}});
    read("processes", limits.processes, {4, ceilings.processes, {}});
    read("output_bytes", limits.output_bytes, {1, ceilings.output_bytes, {}});
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
    if (const nlohmann::json* executions = reader.any("executions");
        executions != nullptr && !executions->is_null()) {
        limits.executions = reader.integer("executions", {1, UINT64_MAX, kCeiling});
    }
    reader.finish();
}

void read_network(ObjectReader& parent, FieldErrors& errors) {
    const nlohmann::json* value = parent.object("network");
    if (value == nullptr) {
        return;
    }
    ObjectReader reader(*value, child_pointer(parent.pointer(), "network"), errors);
    const auto mode = reader.text("mode", kNameBytesMax);
    (void)reader.array("allow");  // Ignored: its mode decides, and that is refused below.
    if (mode == "allowlist") {
        reader.fail(
            "mode", "\"allowlist\" is not offered by this server yet: sessions have no network");
    } else if (mode && *mode != "none") {
        reader.fail("mode", "must be \"none\"");
    } else if (reader.has("allow")) {
        reader.fail("allow", "belongs to mode \"allowlist\", which this server does not offer yet");
    }
    reader.finish();
}

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
    if (reader.any("from") != nullptr || reader.any("sha256") != nullptr) {
        reader.fail("from", "files by reference are not offered by this server yet");
    } else if (value.is_object() && reader.has("text") == reader.has("base64")) {
        reader.fail("", "must have either \"text\" or \"base64\"");
    }
    if (text) {
        file.bytes = *text;
    }
    if (base64) {
        auto bytes = decode_base64(*base64);
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

void read_session_fields(
    ObjectReader& reader,
    const Offer& offer,
    session::SessionOptions& options,
    FieldErrors& errors) {
    if (auto language = reader.text("language", kNameBytesMax)) {
        const auto& known = offer.languages;
        if (std::find(known.begin(), known.end(), *language) == known.end()) {
            reader.fail("language", "is not offered; this server has: " + join(known));
        }
        options.language = std::move(*language);
    }
    if (auto environment = reader.text("environment", kNameBytesMax)) {
        if (*environment != "default") {
            reader.fail("environment", "is not offered; this server has: default");
        }
        options.environment = std::move(*environment);
    }
    read_limits(reader, offer.ceilings, options.limits, errors);
    read_network(reader, errors);
    read_env(reader, options.env, errors);
    read_files(reader, options.files, errors);
    if (const nlohmann::json* metadata = reader.object("metadata")) {
        if (protocol::dump_json(*metadata).size() > limits::kMetadataBytesMax) {
            reader.fail(
                "metadata",
                "must be at most " + std::to_string(limits::kMetadataBytesMax) + " bytes as JSON");
        }
        options.metadata = *metadata;
    }
}

void read_execution_fields(
    ObjectReader& reader, const session::SessionLimits& limits, ExecutionOrder& order) {
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
    const IntegerBounds bounds{1, count(limits.wall), "the session's limit wall_ms"};
    if (const auto timeout = reader.integer("timeout_ms", bounds)) {
        request.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(*timeout));
    }
}

bool is_json_type(std::string_view content_type) {
    std::string_view type = content_type.substr(0, content_type.find(';'));
    while (!type.empty() && type.back() == ' ') {
        type.remove_suffix(1);
    }
    return http::equals_ignoring_case(type, "application/json");
}

}  // namespace

ParsedBody parse_body(const http::Request& request, EmptyBody empty) {
    if (request.body.empty() && empty == EmptyBody::kAllowed) {
        return {nlohmann::json::object(), std::nullopt};
    }
    if (!is_json_type(request.headers.get("Content-Type"))) {
        return {
            nullptr, http::make_problem(415, "Send the body as Content-Type: application/json.")};
    }
    auto value = protocol::parse_json(request.body, "the body");
    if (value.has_error()) {
        return {
            nullptr,
            http::make_problem(
                400, "malformed-json", "The body is not JSON", value.error().message())};
    }
    return {std::move(value).value(), std::nullopt};
}

session::SessionOptions parse_session_options(
    const nlohmann::json& body, const Offer& offer, FieldErrors& errors) {
    session::SessionOptions options;
    ObjectReader reader(body, "", errors);
    read_session_fields(reader, offer, options, errors);
    reader.finish();
    return options;
}

ExecutionOrder parse_execution(
    const nlohmann::json& body, const session::SessionInfo& running, FieldErrors& errors) {
    ExecutionOrder order;
    ObjectReader reader(body, "", errors);
    if (!body.is_object()) {
        return order;
    }
    read_execution_fields(reader, running.limits, order);
    read_files(reader, order.request.files, errors);
    if (const auto language = reader.text("language", kNameBytesMax);
        language && *language != running.language) {
        reader.fail("language", "is not this session's, which is " + running.language);
    }
    reader.finish();
    return order;
}

OneShotOrder parse_one_shot(const nlohmann::json& body, const Offer& offer, FieldErrors& errors) {
    OneShotOrder order;
    ObjectReader reader(body, "", errors);
    if (!body.is_object()) {
        return order;
    }
    read_session_fields(reader, offer, order.options, errors);
    read_execution_fields(reader, order.options.limits, order.execution);
    reader.finish();
    return order;
}

http::Problem invalid_body(FieldErrors errors) {
    std::string detail = "The body has " + std::to_string(errors.size()) +
                         (errors.size() == 1 ? " error: " : " errors, the first: ");
    const auto& first = errors.front();
    detail += (first.pointer.empty() ? "the body" : first.pointer) + " " + first.message + ".";
    http::Problem problem = http::make_problem(422, std::move(detail));
    problem.errors = std::move(errors);
    return problem;
}

}  // namespace cellkeep::agent
