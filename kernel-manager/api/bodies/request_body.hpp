// SPDX-License-Identifier: Apache-2.0
//
// The JSON bodies of the session API, checked whole and turned into what the session service takes.
// Pure: the same text and the same offer give the same answer.
#pragma once

#include "kernel-manager/api/bodies/branch_body.hpp"
#include "kernel-manager/api/bodies/object_reader.hpp"
#include "kernel-manager/execution/execution.hpp"
#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/limits/limits.hpp"
#include "kernel-manager/service/session_service.hpp"
#include "kernel-manager/session/session_info.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::api {

/// What this server can give.
struct Offer {
    std::vector<std::string> languages;
    session::LimitCeilings ceilings;
    std::vector<session::NotOffered> not_offered = {};
};

/// What the server can give now.
Offer offer_of(const session::SessionService& backend);

/// An execution as asked for, with what only the front end needs to know.
struct ExecutionOrder {
    session::ExecutionRequest request;
    bool outputs = false;  // add the nbformat list to the answer
    bool interrupt_on_disconnect = false;
};

struct SessionOrder {
    session::SessionOptions options;
    std::optional<StateOrder> from;    // then it is a branch, and options do not count
    std::optional<std::string> label;  // of the branch
};

struct OneShotOrder {
    session::SessionOptions options;
    ExecutionOrder execution;
    /// How long its answer may be given to identical runs; 0: not.
    std::chrono::seconds cache_ttl{0};
    /// Of what decides the run: two runs of the same digest are identical. Empty if it has neither
    /// an idempotency key nor a cache_ttl.
    std::string digest;
};

// Each fills errors; the value counts only if there are none.
session::SessionOptions parse_session_options(
    const nlohmann::json& body, const Offer& offer, FieldErrors& errors);
/// A session that goes on from a state of another one has all else from it.
SessionOrder parse_session_order(
    const nlohmann::json& body, const Offer& offer, FieldErrors& errors);
/// `running` are those of the session that will run it.
ExecutionOrder parse_execution(
    const nlohmann::json& body, const session::OfferedLanguages& running, FieldErrors& errors);
/// What of the session an interrupt or a restart is meant for; nothing: the body does not say.
std::optional<std::string> parse_language_choice(
    const nlohmann::json& body, const session::OfferedLanguages& running, FieldErrors& errors);
OneShotOrder parse_one_shot(const nlohmann::json& body, const Offer& offer, FieldErrors& errors);

/// The member "env" of a body: variables by their names.
void read_env(ObjectReader& parent, std::map<std::string, std::string>& env, FieldErrors& errors);

}  // namespace cellkeep::api
