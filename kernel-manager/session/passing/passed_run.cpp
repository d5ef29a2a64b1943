// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/passing/passed_run.hpp"

#include "kernel-manager/execution/passing/passed_result.hpp"
#include "protocol/support/passed_time.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace cellkeep::session {

using nlohmann::json;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

namespace {

json write_outputs(const OutputList::Passed& list) {
    json outputs = json::array();
    for (const NotebookOutput& output : list.outputs) {
        outputs.push_back(write_output(output));
    }
    json groups = json::array();
    for (const OutputList::Passed::Group& group : list.groups) {
        groups.push_back(
            {{"display_id", group.display_id},
             {"places", group.places},
             {"shared_count", group.shared_count},
             {"shared_bytes", group.shared_bytes},
             {"loose_bytes", group.loose_bytes}});
    }
    return {
        {"outputs", std::move(outputs)},
        {"groups", std::move(groups)},
        {"bytes", list.bytes},
        {"text_bytes", list.text_bytes},
        {"left_out", list.left_out}};
}

OutputList::Passed read_outputs(const json& text) {
    OutputList::Passed list;
    for (const json& output : text.at("outputs")) {
        list.outputs.push_back(read_output(output));
    }
    for (const json& group : text.at("groups")) {
        list.groups.push_back(
            {group.at("display_id").get<std::string>(),
             group.at("places").get<std::vector<std::size_t>>(),
             group.at("shared_count").get<std::size_t>(),
             group.at("shared_bytes").get<std::size_t>(),
             group.at("loose_bytes").get<std::uint64_t>()});
    }
    list.bytes = text.at("bytes").get<std::uint64_t>();
    list.text_bytes = text.at("text_bytes").get<std::uint64_t>();
    list.left_out = text.at("left_out").get<std::uint64_t>();
    return list;
}

json write_recorder(const ExecutionRecorder::Passed& recorder) {
    return {
        {"result", write_result(recorder.result)},
        {"stdout", recorder.stdout_text},
        {"stderr", recorder.stderr_text},
        {"stdin", recorder.stdin_text},
        {"outputs", write_outputs(recorder.outputs)},
        {"clear", recorder.clear_before_next}};
}

ExecutionRecorder::Passed read_recorder(const json& text) {
    return {
        read_result(text.at("result")),
        text.at("stdout").get<std::string>(),
        text.at("stderr").get<std::string>(),
        text.at("stdin").get<std::string>(),
        read_outputs(text.at("outputs")),
        text.at("clear").get<bool>()};
}

json write_watch(const RunWatch::Passed& watch) {
    json denials = json::array();
    for (const sandbox::Denial& denial : watch.monitor.denials) {
        denials.push_back({{"system_call", denial.system_call}, {"count", denial.count}});
    }
    return {
        {"began_at", to_ticks(watch.monitor.began_at)},
        {"cpu", watch.monitor.cpu_at_begin.count()},
        {"oom_kills", watch.monitor.oom_kills_at_begin},
        {"process_refusals", watch.monitor.process_refusals_at_begin},
        {"denials", std::move(denials)},
        {"paused", watch.paused.count()},
        {"counts_own_cpu", watch.counts_own_cpu}};
}

RunWatch::Passed read_watch(const json& text) {
    RunWatch::Passed watch;
    watch.monitor.began_at =
        from_ticks<steady_clock::time_point>(text.at("began_at").get<std::int64_t>());
    watch.monitor.cpu_at_begin = microseconds(text.at("cpu").get<std::int64_t>());
    watch.monitor.oom_kills_at_begin = text.at("oom_kills").get<std::uint64_t>();
    watch.monitor.process_refusals_at_begin = text.at("process_refusals").get<std::uint64_t>();
    for (const json& denial : text.at("denials")) {
        watch.monitor.denials.push_back(
            {denial.at("system_call").get<std::string>(), denial.at("count").get<std::uint64_t>()});
    }
    watch.paused = nanoseconds(text.at("paused").get<std::int64_t>());
    watch.counts_own_cpu = text.at("counts_own_cpu").get<bool>();
    return watch;
}

json write_files(const ArtifactTracker::Passed& files) {
    json listing = json::array();
    for (const auto& [path, state] : files.listing) {
        listing.push_back(
            {path,
             static_cast<int>(state.kind),
             state.mode,
             state.inode,
             state.bytes,
             state.modified,
             state.changed});
    }
    return {
        {"listing", std::move(listing)},
        {"complete", files.complete},
        {"begun_at", files.begun_at}};
}

ArtifactTracker::Passed read_files(const json& text) {
    ArtifactTracker::Passed files;
    for (const json& one : text.at("listing")) {
        sandbox::FileState state;
        state.kind = static_cast<sandbox::EntryKind>(one.at(1).get<int>());
        state.mode = one.at(2).get<std::uint32_t>();
        state.inode = one.at(3).get<std::uint64_t>();
        state.bytes = one.at(4).get<std::uint64_t>();
        state.modified = one.at(5).get<std::int64_t>();
        state.changed = one.at(6).get<std::int64_t>();
        files.listing.emplace(one.at(0).get<std::string>(), state);
    }
    files.complete = text.at("complete").get<bool>();
    files.begun_at = text.at("begun_at").get<std::int64_t>();
    return files;
}

PassedRequest read_request(const json& text, const FindExecution& find, ExecutionPhase phase) {
    auto message = protocol::Message::from_frame(text.at("message").get<std::string>());
    auto execution = find(text.at("execution").get<std::string>());
    if (message.has_error() || !execution || execution->phase() != phase) {
        throw json::other_error::create(502, "a request is of no execution in its phase", &text);
    }
    PassedRequest request{
        .message = std::move(message).value(),
        .execution = std::move(execution),
        .stdin_text = {},
        .timeout = std::nullopt,
        .queued_at =
            from_ticks<steady_clock::time_point>(text.at("queued_at").get<std::int64_t>())};
    if (const json& timeout = text.at("timeout"); !timeout.is_null()) {
        request.timeout = milliseconds(timeout.get<std::int64_t>());
    }
    return request;
}

}  // namespace

json write_run(const PassedRun& run) {
    return {
        {"message", std::string(run.message.frame())},
        {"execution", run.execution->id()},
        {"recorder", write_recorder(run.recorder)},
        {"timeout", run.timeout ? json(run.timeout->count()) : json()},
        {"queued_at", to_ticks(run.queued_at)},
        {"started_at", to_ticks(run.request.started_at)},
        {"cpu_at_start", run.request.cpu_at_start.count()},
        {"watch", write_watch(run.watch)},
        {"files", write_files(run.files)}};
}

PassedRun read_run(const json& text, const FindExecution& find) {
    PassedRequest asked = read_request(text, find, ExecutionPhase::kRunning);
    PassedRun run{
        .message = std::move(asked.message),
        .execution = std::move(asked.execution),
        .recorder = read_recorder(text.at("recorder")),
        .timeout = asked.timeout,
        .queued_at = asked.queued_at,
        .request = {},
        .watch = read_watch(text.at("watch")),
        .files = read_files(text.at("files"))};
    run.request.started_at =
        from_ticks<steady_clock::time_point>(text.at("started_at").get<std::int64_t>());
    run.request.cpu_at_start = microseconds(text.at("cpu_at_start").get<std::int64_t>());
    return run;
}

json write_waiting(const PassedRequest& request) {
    return {
        {"message", std::string(request.message.frame())},
        {"execution", request.execution->id()},
        {"stdin", request.stdin_text},
        {"timeout", request.timeout ? json(request.timeout->count()) : json()},
        {"queued_at", to_ticks(request.queued_at)}};
}

PassedRequest read_waiting(const json& text, const FindExecution& find) {
    PassedRequest request = read_request(text, find, ExecutionPhase::kQueued);
    request.stdin_text = text.at("stdin").get<std::string>();
    return request;
}

}  // namespace cellkeep::session
