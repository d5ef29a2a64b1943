// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/passing/session_passage.hpp"

#include "kernel-manager/process/passed_commands.hpp"
#include "kernel-manager/session/passing/passed_answers.hpp"
#include "kernel-manager/session/passing/passed_checkpoints.hpp"
#include "kernel-manager/session/passing/passed_kernel.hpp"
#include "kernel-manager/session/passing/passed_manifest.hpp"
#include "kernel-manager/session/passing/passed_network.hpp"
#include "kernel-manager/session/passing/passed_setup.hpp"
#include "kernel-manager/session/passing/passed_specs.hpp"
#include "protocol/support/passed_time.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

namespace cellkeep::session {

using nlohmann::json;
using std::chrono::microseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;

namespace {

json moment_text(const std::optional<steady_clock::time_point>& moment) {
    return moment ? json(to_ticks(*moment)) : json();
}

std::optional<steady_clock::time_point> find_steady(const json& text, const char* name) {
    const json& value = text.at(name);
    return value.is_null()
               ? std::nullopt
               : std::optional(from_ticks<steady_clock::time_point>(value.get<std::int64_t>()));
}

json write_account(const SessionAccount::Passed& account) {
    return {
        {"executions", account.used.executions},
        {"wall", account.used.wall.count()},
        {"cpu", account.used.cpu.count()},
        {"output_bytes", account.used.output_bytes},
        {"artifact_bytes", account.used.artifact_bytes},
        {"cpu_before", account.cpu_before.count()},
        {"failures", account.breaker.failures},
        {"open_until", moment_text(account.breaker.open_until)},
        {"cooldown", account.breaker.cooldown.count()}};
}

SessionAccount::Passed read_account(const json& text) {
    SessionAccount::Passed account;
    account.used.executions = text.at("executions").get<std::uint64_t>();
    account.used.wall = microseconds(text.at("wall").get<std::int64_t>());
    account.used.cpu = microseconds(text.at("cpu").get<std::int64_t>());
    account.used.output_bytes = text.at("output_bytes").get<std::uint64_t>();
    account.used.artifact_bytes = text.at("artifact_bytes").get<std::uint64_t>();
    account.cpu_before = microseconds(text.at("cpu_before").get<std::int64_t>());
    account.breaker.failures = text.at("failures").get<std::uint32_t>();
    account.breaker.open_until = find_steady(text, "open_until");
    account.breaker.cooldown = seconds(text.at("cooldown").get<std::int64_t>());
    return account;
}

json write_life(const SessionLife::Passed& life) {
    return {
        {"created_at", to_ticks(life.created_at)},
        {"created_steady", to_ticks(life.created_steady)},
        {"last_activity", to_ticks(life.last_activity)},
        {"client_left_at", moment_text(life.client_left_at)}};
}

SessionLife::Passed read_life(const json& text) {
    return {
        from_ticks<system_clock::time_point>(text.at("created_at").get<std::int64_t>()),
        from_ticks<steady_clock::time_point>(text.at("created_steady").get<std::int64_t>()),
        from_ticks<steady_clock::time_point>(text.at("last_activity").get<std::int64_t>()),
        find_steady(text, "client_left_at")};
}

/// But for the main one.
std::vector<SupervisedKernel*> further_of(const SessionKernels& kernels) {
    std::vector<SupervisedKernel*> further = kernels.all();
    further.erase(further.begin());
    return further;
}

std::size_t bytes_of_kernels(const SessionKernels& kernels) {
    std::size_t bytes = 0;
    for (const SupervisedKernel* kernel : kernels.all()) {
        bytes += kPassedBesidesBytes + kernel->passed_bytes();
    }
    return bytes;
}

json write_further(const SessionKernels& kernels, std::vector<PassedInterpreter>& ends) {
    json further = json::array();
    for (SupervisedKernel* kernel : further_of(kernels)) {
        PassedKernel passed = kernel->pass_on();
        further.push_back(
            {{"language", kernel->spec().language}, {"kernel", write_kernel(passed)}});
        ends.push_back(std::move(passed.process.interpreter));
    }
    return further;
}

Status go_on_with(
    SupervisedKernel& kernel,
    const json& text,
    PassedInterpreter interpreter,
    const SessionExecutions& executions) {
    PassedKernel passed =
        read_kernel(text, std::move(interpreter), [&executions](const std::string& id) {
            return executions.find(id);
        });
    return kernel.go_on(
        std::move(passed), [&executions](const std::string& id, std::string stdin_text) {
            return executions.make_recorder(id, std::move(stdin_text));
        });
}

/// A program of an older format writes none.
Status read_further(
    const json& state,
    std::vector<PassedInterpreter> ends,
    SessionKernels& kernels,
    const SessionExecutions& executions) {
    const json further = state.contains("further") ? state.at("further") : json::array();
    if (further.size() != ends.size()) {
        return Error(ErrorCode::kProtocol, "passed session: a kernel without its place");
    }
    for (std::size_t i = 0; i < ends.size(); ++i) {
        const json& one = further.at(i);
        BOOST_OUTCOME_TRY(
            SupervisedKernel * kernel, kernels.open_again(one.at("language").get<std::string>()));
        BOOST_OUTCOME_TRY(go_on_with(*kernel, one.at("kernel"), std::move(ends[i]), executions));
    }
    return ok();
}

std::size_t names_of_checkpoints(const SessionCheckpoints& checkpoints) {
    std::size_t names = 0;
    for (const auto& files : checkpoints.manifests()) {
        names += files->files.size() + files->unkept.size();
    }
    return names;
}

std::size_t bytes_of_checkpoints(const SessionCheckpoints& checkpoints) {
    std::size_t bytes = 0;
    for (const auto& files : checkpoints.manifests()) {
        // And about as much for where in the file each content is.
        bytes += kPassedBesidesBytes + 2 * bytes_of_names(*files);
    }
    return bytes;
}

json write_output(const OutputJournal& journal) {
    json messages = json::array();
    for (const protocol::Message& message : journal.newest(kPassedOutputBytesMax)) {
        messages.push_back(std::string(message.frame()));
    }
    return {{"last", journal.last_sequence()}, {"newest", std::move(messages)}};
}

void read_output(const json& text, OutputFanout& output) {
    std::vector<protocol::Message> newest;
    for (const json& frame : text.at("newest")) {
        auto message = protocol::Message::from_frame(frame.get<std::string>());
        if (message.has_error()) {
            newest.clear();  // what follows has its number all the same
            continue;
        }
        newest.push_back(std::move(message).value());
    }
    output.go_on(text.at("last").get<std::uint64_t>(), std::move(newest));
}

}  // namespace

std::optional<std::string> SessionPassage::find_obstacle() const {
    if (parts_.watch.is_sandbox_gone()) {
        return "its sandbox is gone";
    }
    if (names_of_checkpoints(parts_.checkpoints) > kPassedNamesMax) {
        return "its checkpoints have more than " + std::to_string(kPassedNamesMax) + " files";
    }
    if (auto of_commands = parts_.commands.find_obstacle()) {
        return of_commands;
    }
    // A client of a command comes back to it.
    if (parts_.life.clients().staying() > parts_.commands.attached()) {
        return "a client is connected";
    }
    return std::nullopt;
}

std::optional<std::string> SessionPassage::find_newer_part() const {
    if (parts_.kernels.all().size() > 1) {
        return "it runs several languages";
    }
    if (parts_.freezer.paused()) {
        return "it is paused";
    }
    return parts_.checkpoints.has_sleeping() ? std::optional<std::string>("it has checkpoints")
                                             : std::nullopt;
}

std::optional<std::string> SessionPassage::find_work(bool runs_pass) const {
    const bool can_pass = parts_.kernels.can_pass(runs_pass);
    if (parts_.kernels.are_busy() && !can_pass) {
        return "code runs or waits";
    }
    if (parts_.setup.proxy && !parts_.setup.proxy->is_at_rest()) {
        return "a request goes through its proxy";
    }
    const bool rests =
        !parts_.closed && !parts_.setup.spare && can_pass && !parts_.starter.is_starting() &&
        parts_.watch.is_at_rest() && !parts_.auto_checkpoints.is_due() &&
        parts_.checkpoints.is_at_rest() && parts_.starter.are_sleepers_at_rest() &&
        parts_.account.runs() == parts_.kernels.running() && parts_.ports.awaited() == 0;
    return rests ? std::nullopt : std::optional<std::string>("it is at work");
}

/// Pid 1 answers only while it runs. What is paused runs for that moment, and its client learns of
/// nothing.
Result<std::uint32_t> SessionPassage::ask_for_death_signal(bool wanted) {
    if (parts_.freezer.paused()) {
        BOOST_OUTCOME_TRY(parts_.sandbox.thaw());
    } else {
        parts_.freezer.wake();
    }
    auto asked = parts_.sandbox.ask_for_death_signal(wanted);
    if (asked.has_error() && parts_.freezer.paused()) {
        (void)freeze_again().has_value();  // Ignored: pid 1 takes nothing any more.
    }
    return asked;
}

Status SessionPassage::wait_for_death_signal(
    std::uint32_t asked, std::chrono::milliseconds patience) {
    Status answered = parts_.sandbox.wait_for_death_signal(asked, patience);
    if (!parts_.freezer.paused()) {
        return answered;
    }
    Status frozen = freeze_again();
    return answered.has_error() ? std::move(answered) : std::move(frozen);
}

/// What the freezer says is so.
Status SessionPassage::freeze_again() {
    // It is not waited for: it comes when the threads next run.
    Status frozen = parts_.sandbox.freeze(std::chrono::milliseconds(0));
    const bool coming = frozen.has_error() && frozen.error().code() == ErrorCode::kTimeout;
    return coming ? Status(ok()) : std::move(frozen);
}

std::size_t SessionPassage::passed_bytes(SharedParts& shared) const {
    if (parts_.setup.catalog) {
        (void)shared.add(parts_.setup.catalog);  // Ignored: its place is none yet.
    }
    const OutputJournal& journal = parts_.output.journal();
    return kPassedBesidesBytes + json::to_cbor(write_options(parts_.setup.options)).size() +
           json::to_cbor(write_spec(parts_.setup.spec, shared)).size() +
           bytes_of_kernels(parts_.kernels) + std::min(journal.bytes(), kPassedOutputBytesMax) +
           bytes_of_executions(parts_.executions) + parts_.commands.passed_bytes() +
           bytes_of_checkpoints(parts_.checkpoints) + bytes_of_network(parts_.setup);
}

PassedSession SessionPassage::pass_on(SharedParts& shared) {
    const bool paused = parts_.freezer.paused();
    if (!paused) {
        parts_.freezer.wake();
    }
    parts_.freezer.stop();
    parts_.life.stop();
    PassedSession passed;
    passed.id = parts_.setup.id;
    passed.kernel_id = parts_.setup.kernel_id;
    passed.branch = parts_.setup.branch;
    if (const auto zygote = parts_.sandbox.zygote()) {
        passed.zygote = shared.add(zygote);
    }
    PassedKernel kernel = parts_.kernels.main().pass_on();
    json further = write_further(parts_.kernels, passed.further);
    PassedCheckpoints checkpoints = parts_.checkpoints.pass_on();
    process::PassedCommands commands = parts_.commands.pass_on();
    passed.commands = process::take_ends(commands);
    json saved = json::array();
    for (const SavedTexts::Saved& one : parts_.saved_texts.all()) {
        saved.push_back({{"directory", one.directory}, {"bytes", one.bytes}});
    }
    passed.state = {
        {"options", write_options(parts_.setup.options)},
        {"paused", paused},
        {"paused_since", moment_text(parts_.freezer.paused_since())},
        {"spec", write_spec(parts_.setup.spec, shared)},
        {"catalog", parts_.setup.catalog ? json(shared.add(parts_.setup.catalog)) : json()},
        {"mounted", parts_.setup.mounted},
        {"account", write_account(parts_.account.pass_on())},
        {"life", write_life(parts_.life.pass_on())},
        {"kernel", write_kernel(kernel)},
        {"further", std::move(further)},
        {"checkpoints", write_checkpoints(checkpoints, passed.checkpoints)},
        {"executions", write_executions(parts_.executions)},
        {"network", write_network(parts_.setup, passed.network)},
        {"commands", process::write_commands(commands)},
        {"ended_commands", process::write_ended(commands)},
        {"output", write_output(parts_.output.journal())},
        {"saved_texts", std::move(saved)}};
    passed.interpreter = std::move(kernel.process.interpreter);
    parts_.closed = true;
    parts_.kernels.close();
    parts_.auto_checkpoints.stop();
    parts_.commands.close();
    parts_.watch.close();
    parts_.branches.forget_sandbox();
    passed.sandbox = parts_.sandbox.pass_on();
    return passed;
}

Status SessionPassage::go_on(PassedSession passed) {
    try {
        const json& state = passed.state;
        if (is_paused(passed)) {  // before the times of what runs are looked at
            const auto since =
                state.contains("paused_since") ? find_steady(state, "paused_since") : std::nullopt;
            parts_.freezer.go_on_paused(since.value_or(steady_clock::now()));
        }
        parts_.account.go_on(read_account(state.at("account")));
        parts_.life.go_on(read_life(state.at("life")));
        read_output(state.at("output"), parts_.output);
        read_executions(state.at("executions"), parts_.io, parts_.executions);
        process::PassedCommands commands = process::read_commands(
            state.at("commands"),
            state.contains("ended_commands") ? state.at("ended_commands") : json(),
            std::move(passed.commands));
        BOOST_OUTCOME_TRY(parts_.commands.go_on(std::move(commands)));
        std::deque<SavedTexts::Saved> saved;
        for (const json& one : state.at("saved_texts")) {
            saved.push_back(
                {one.at("directory").get<std::string>(), one.at("bytes").get<std::uint64_t>()});
        }
        parts_.saved_texts.go_on(std::move(saved));
        BOOST_OUTCOME_TRY(parts_.watch.begin(parts_.sandbox.event_fd()));
        BOOST_OUTCOME_TRY(go_on_with(
            parts_.kernels.main(),
            state.at("kernel"),
            std::move(passed.interpreter),
            parts_.executions));
        BOOST_OUTCOME_TRY(
            read_further(state, std::move(passed.further), parts_.kernels, parts_.executions));
        if (state.contains("checkpoints")) {  // a program of an older format writes none
            BOOST_OUTCOME_TRY(
                PassedCheckpoints checkpoints,
                read_checkpoints(state.at("checkpoints"), std::move(passed.checkpoints)));
            if (checkpoints.begun && !parts_.setup.branch) {
                return Error(
                    ErrorCode::kProtocol, "passed session: it is no branch and began as one");
            }
            BOOST_OUTCOME_TRY(parts_.checkpoints.go_on(std::move(checkpoints)));
        }
    } catch (const json::exception& failure) {
        return Error(ErrorCode::kProtocol, std::string("passed session: ") + failure.what());
    }
    if (!parts_.freezer.paused()) {
        parts_.freezer.note_use();
    }
    parts_.life.review();
    return ok();
}

}  // namespace cellkeep::session
