// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/control/sandbox_answer.hpp"

#include "kernel-manager/e2b/wire/sandbox_place.hpp"
#include "kernel-manager/http/access/host_field.hpp"
#include "protocol/support/time.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>

namespace cellkeep::e2b {

namespace {

using std::chrono::system_clock;
constexpr std::uint64_t kMegabyte = 1ULL << 20U;
/// What the clients get as the end of one that none is set for.
constexpr std::chrono::hours kNoEnd{24LL * 365};

std::int64_t cores_of(const session::SessionInfo& info) {
    return std::max<std::int64_t>(1, std::llround(std::ceil(info.limits.cpu_cores)));
}

std::string template_of(const session::SessionInfo& info, const SandboxRecord& record) {
    return record.template_id.empty() ? info.language : record.template_id;
}

system_clock::time_point end_of(const session::SessionInfo& info, const SandboxRecord& record) {
    if (!record.ends_at) {
        const auto life = info.limits.lifetime;
        return life.count() > 0 ? info.created_at + life : system_clock::now() + kNoEnd;
    }
    const auto left = *record.ends_at - SandboxRecord::Clock::now();
    return system_clock::now() + std::chrono::duration_cast<system_clock::duration>(left);
}

constexpr std::string_view kApiLabel = "api.";

struct DiskUse {
    std::uint64_t used = 0;
    std::uint64_t total = 0;
};

Result<DiskUse> disk_of(session::Session& session) {
    BOOST_OUTCOME_TRY(const auto workspace, session.workspace());
    struct statvfs found {};
    if (::fstatvfs(workspace.directory_fd(), &found) < 0) {
        return Error::from_errno(errno, "fstatvfs(workspace)");
    }
    const std::uint64_t block = found.f_frsize;
    return DiskUse{(found.f_blocks - found.f_bfree) * block, found.f_blocks * block};
}

}  // namespace

std::string domain_of(const http::Request& request) {
    std::string host(request.headers.get("Host"));
    // With E2B_DOMAIN the clients ask "api.NAME", and put the sandboxes' ports below NAME.
    if (http::equals_ignoring_case(host.substr(0, kApiLabel.size()), kApiLabel)) {
        host.erase(0, kApiLabel.size());
    }
    const auto name = http::host_of(host);
    if (!name || name->empty()) {
        return "localhost";
    }
    const bool loopback = *name == "127.0.0.1" || *name == "[::1]";
    return loopback ? "localhost" + host.substr(name->size()) : host;
}

nlohmann::json created_json(
    const session::Session& session,
    const SandboxRecord& record,
    const SandboxTokens& tokens,
    const std::string& domain) {
    const std::string name = template_of(session.info(), record);
    return {
        {"templateID", name},
        {"alias", name},
        {"sandboxID", sandbox_id_of(session.id())},
        {"clientID", "cellkeep"},
        {"envdVersion", kEnvdVersion},
        {"envdAccessToken", tokens.token(SandboxTokens::Use::kEnvd, session.id())},
        {"trafficAccessToken", tokens.token(SandboxTokens::Use::kTraffic, session.id())},
        {"domain", domain}};
}

nlohmann::json listed_json(
    const session::SessionInfo& info, const SandboxRecord& record, State state) {
    const std::string name = template_of(info, record);
    nlohmann::json metadata = nlohmann::json::object();
    for (const auto& [key, value] : info.metadata.items()) {
        metadata[key] = value.is_string() ? value : nlohmann::json(value.dump());
    }
    return {
        {"templateID", name},
        {"alias", name},
        {"sandboxID", sandbox_id_of(info.id)},
        {"clientID", "cellkeep"},
        {"envdVersion", kEnvdVersion},
        {"startedAt", to_iso8601(info.created_at)},
        {"endAt", to_iso8601(end_of(info, record))},
        {"state", state == State::kPaused ? "paused" : "running"},
        {"cpuCount", cores_of(info)},
        {"memoryMB", info.limits.memory_mb},
        {"diskSizeMB", info.limits.disk_mb},
        {"metadata", std::move(metadata)}};
}

nlohmann::json detail_json(
    const session::SessionInfo& info,
    const SandboxRecord& record,
    State state,
    const SandboxTokens& tokens,
    const std::string& domain) {
    nlohmann::json answer = listed_json(info, record, state);
    answer["envdAccessToken"] = tokens.token(SandboxTokens::Use::kEnvd, info.id);
    answer["domain"] = domain;
    answer["allowInternetAccess"] = info.network.mode != egress::NetworkMode::kNone;
    nlohmann::json hosts = nlohmann::json::array();
    for (const egress::AllowedHost& host : info.network.allow) {
        hosts.push_back(to_string(host));
    }
    answer["network"] = {{"allowOut", std::move(hosts)}, {"denyOut", {"0.0.0.0/0"}}};
    answer["lifecycle"] = {
        {"autoResume", record.resume_on_use},
        {"onTimeout", record.pause_at_end ? "pause" : "kill"}};
    return answer;
}

Result<nlohmann::json> metrics_json(session::Session& session, SandboxRecord& record) {
    const session::SessionInfo info = session.info();
    BOOST_OUTCOME_TRY(const sandbox::Usage usage, session.usage());
    BOOST_OUTCOME_TRY(const DiskUse disk, disk_of(session));
    const auto now = SandboxRecord::Clock::now();
    const auto wall = std::chrono::duration_cast<std::chrono::microseconds>(now - record.looked_at);
    const auto cpu = usage.cpu_time - record.cpu_seen;
    const bool known = record.looked_at != SandboxRecord::Clock::time_point() && wall.count() > 0;
    const double share =
        known ? 100.0 * static_cast<double>(cpu.count()) /
                    (static_cast<double>(wall.count()) * static_cast<double>(cores_of(info)))
              : 0.0;
    record.looked_at = now;
    record.cpu_seen = usage.cpu_time;
    const auto time = system_clock::now();
    return nlohmann::json{
        {"timestamp", to_iso8601(time)},
        {"timestampUnix",
         std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count()},
        {"cpuCount", cores_of(info)},
        {"cpuUsedPct", std::clamp(std::round(share * 100) / 100, 0.0, 100.0)},
        {"memUsed", usage.memory_bytes},
        {"memTotal", info.limits.memory_mb * kMegabyte},
        {"memCache", 0},
        {"diskUsed", disk.used},
        {"diskTotal", disk.total}};
}

}  // namespace cellkeep::e2b
