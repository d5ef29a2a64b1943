// SPDX-License-Identifier: Apache-2.0
//
// checkpoint, rollback and branch.
#include "kernel-manager/mcp/tools/arguments.hpp"
#include "kernel-manager/mcp/tools/tool.hpp"

#include <string>
#include <utility>

namespace cellkeep::mcp {

namespace {

constexpr const char* kOwnSession = "default";

std::string session_meant(const nlohmann::json& arguments) {
    return text_argument(arguments, "session", kOwnSession);
}

nlohmann::json lost_json(const checkpoint::Lost& lost) {
    return {
        {"threads", lost.threads},
        {"processes", lost.children},
        {"sockets", lost.sockets},
        {"shared_mappings", lost.shared_mappings}};
}

ToolAnswer refuse_copy(const checkpoint::NotForkable& refused) {
    using Why = checkpoint::NotForkable::Why;
    std::string hint = "The session's limits of processes and memory hold for copies, too.";
    std::string message = "The system refused to copy the interpreter.";
    if (refused.why == Why::kLanguage) {
        message = "An interpreter of this language cannot be copied.";
        hint = "Save what you need to a file.";
    } else if (refused.why == Why::kThreads) {
        message = "The interpreter has " + std::to_string(refused.count) +
                  " other threads, which a copy would lose.";
        hint = "End them first, or pass drop_threads to lose them.";
    } else if (refused.why == Why::kThread) {
        message = "The thread \"" + refused.name + "\" of the interpreter could not be stopped.";
        hint = "Call again when it waits, or pass drop_threads to lose all other threads.";
    } else if (refused.why == Why::kDebugger) {
        message = "A debugger was used in the interpreter.";
        hint = "Call restart first.";
    }
    return refuse(Refusal{"not_forkable", message, hint, State::kKept});
}

ToolAnswer refuse_checkpoint(const session::Session& session, const std::string& id) {
    const auto gone = session.find_gone_checkpoint(id);
    return refuse(Refusal{
        gone ? "checkpoint_gone" : "unknown_checkpoint",
        "The session has no checkpoint " + show_text(id).text +
            (gone ? ": it was " + std::string(to_string(*gone)) + "." : "."),
        "list_sessions names the checkpoints of each session.",
        State::kKept});
}

ToolAnswer refuse_branch(
    const Error& error, const session::Session& parent, const std::string& checkpoint) {
    switch (error.code()) {
        case ErrorCode::kNotFound:
            return refuse_checkpoint(parent, checkpoint);
        case ErrorCode::kSystem:
        case ErrorCode::kProtocol:
        case ErrorCode::kPermissionDenied:
            return refuse_copy({checkpoint::NotForkable::Why::kSystem});
        default:
            return refuse(error);
    }
}

checkpoint::CheckpointOrder order_of(const nlohmann::json& arguments) {
    checkpoint::CheckpointOrder order;
    if (arguments.contains("label")) {
        order.label = text_argument(arguments, "label");
    }
    if (flag_argument(arguments, "drop_threads")) {
        order.on_threads = checkpoint::OnThreads::kDrop;
    }
    return order;
}

}  // namespace

ToolCoroutine checkpoint_session(
    ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments) {
    const auto found = bench.names.find(call->principal(), session_meant(arguments));
    if (found.has_error()) {
        co_return refuse(found.error(), State::kLost);
    }
    const SessionNames::Session& session = found.value();
    checkpoint::CheckpointOrder order = order_of(arguments);
    const auto made = co_await session->make_checkpoint(std::move(order));
    if (made.has_error()) {
        co_return refuse(made.error());
    }
    if (made.value().refused) {
        co_return refuse_copy(*made.value().refused);
    }
    const checkpoint::Checkpoint& one = made.value().checkpoint;
    nlohmann::json structured = {
        {"session_id", session->id()},
        {"checkpoint", one.id},
        {"unchanged", made.value().unchanged},
        {"files_kept", one.files.complete && one.files.unkept_count == 0},
        {"lost", lost_json(one.lost)}};
    if (!made.value().evicted.empty()) {
        structured["evicted"] = made.value().evicted;
    }
    co_return done_answer(State::kKept, std::move(structured), "checkpoint " + one.id);
}

ToolCoroutine roll_back(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments) {
    const auto found = bench.names.find(call->principal(), session_meant(arguments));
    if (found.has_error()) {
        co_return refuse(found.error(), State::kLost);
    }
    const SessionNames::Session& session = found.value();
    checkpoint::RollbackOrder order;
    order.checkpoint = text_argument(arguments, "checkpoint");
    order.discard = flag_argument(arguments, "discard");
    const std::string id = order.checkpoint;
    const auto back = co_await session->roll_back(std::move(order));
    if (back.has_error() && back.error().code() == ErrorCode::kNotFound) {
        co_return refuse_checkpoint(*session, id);
    }
    if (back.has_error()) {
        co_return refuse(back.error());
    }
    if (back.value().refused) {
        co_return refuse_copy(*back.value().refused);
    }
    // What this answer tells, the next does not tell again.
    (void)bench.names.look(*session, session->info().language);
    const auto& left_as = back.value().left_as;
    co_return done_answer(
        State::kRestored,
        {{"session_id", session->id()},
         {"checkpoint", id},
         {"lost", lost_json(back.value().lost)},
         {"files_failed", back.value().files_failed},
         {"left_as", left_as ? nlohmann::json(*left_as) : nlohmann::json(nullptr)}},
        "rolled back to " + id +
            (back.value().files_failed == 0 ? "; files, too"
                                            : "; some files are not as they were"));
}

ToolCoroutine branch_session(
    ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments) {
    const auto found = bench.names.find(call->principal(), session_meant(arguments));
    if (found.has_error()) {
        co_return refuse(found.error(), State::kLost);
    }
    const SessionNames::Session& parent = found.value();
    const std::string name = text_argument(arguments, "name");
    // Before a checkpoint is made for it.
    if (const Status free = bench.names.check_free(call->principal(), name); free.has_error()) {
        co_return refuse(free.error());
    }
    if (!parent->info().branches) {
        co_return refuse(Refusal{
            "not_branchable",
            "The session was not begun to be branched.",
            "Begin one under another name, with `branches` in the first run_code.",
            State::kKept});
    }
    std::string from = text_argument(arguments, "checkpoint");
    if (from.empty()) {
        checkpoint::CheckpointOrder now = order_of(arguments);
        const auto made = co_await parent->make_checkpoint(std::move(now));
        if (made.has_error()) {
            co_return refuse_branch(made.error(), *parent, from);
        }
        if (made.value().refused) {
            co_return refuse_copy(*made.value().refused);
        }
        from = made.value().checkpoint.id;
    }
    session::BranchOrder order{.session = parent->id(), .checkpoint = from, .label = name};
    const auto made = co_await bench.names.branch(call->principal(), name, std::move(order));
    if (made.has_error()) {
        co_return refuse_branch(made.error(), *parent, from);
    }
    co_return done_answer(
        State::kRestored,
        {{"session", name},
         {"session_id", made.value()->id()},
         {"branch_of", parent->id()},
         {"checkpoint", from}},
        "branch " + name + " from " + from);
}

}  // namespace cellkeep::mcp
