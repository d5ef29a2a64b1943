// SPDX-License-Identifier: Apache-2.0
//
// How the answer to an accepted execution is given: whole, as a stream of events, or later
// (RFC 7240, respond-async); and what happens to it when the client goes first. One io_context
// thread.
#pragma once

#include "kernel-manager/api/answers/event_stream.hpp"
#include "kernel-manager/api/answers/execution_model.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/message/response.hpp"

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace cellkeep::api {

enum class Form { kWhole, kServerSent, kLines, kLater };

/// The form that Accept and Prefer ask for; 406 if this server gives none of what is accepted.
struct ChosenForm {
    Form form = Form::kWhole;
    std::uint64_t after = 0;  // Last-Event-ID: the event that a stream taken up again has
    std::optional<http::Problem> problem;
};
ChosenForm choose_form(const http::Request& request);

struct AnswerPlan {
    std::shared_ptr<session::Execution> execution;
    std::string location;  // of the execution
    Form form = Form::kWhole;
    Outputs outputs = Outputs::kOmit;
    Origin origin = Origin::kRun;
    std::uint64_t after = 0;  // the last event that a stream's client has
    /// Of this request: an answer from the cache has them in place of the first run's.
    std::string reasoning;
    nlohmann::json metadata = nlohmann::json::object();
    /// Called if the client goes before the end and no other client listens. Empty: nothing
    /// happens.
    std::function<void()> on_abandoned;
    /// What another program in this process needs to give this answer, or the rest of its stream: a
    /// JSON object for http::ClientWatch::await(). Null: no other program can give it.
    nlohmann::json awaited;
    /// It goes on with a stream whose beginning another program has sent.
    bool goes_on = false;
    /// Waited for before a whole answer is given; empty: nothing to wait for.
    std::function<boost::asio::awaitable<void>()> settled;
};
boost::asio::awaitable<http::Response> give_answer(http::Request& request, AnswerPlan plan);

/// The answer to GET …/events: the stream after what the client has, or 204 if it has everything.
/// awaited: as AnswerPlan's.
http::Response resume_events(
    const http::Request& request,
    const std::shared_ptr<session::Execution>& execution,
    nlohmann::json awaited);

/// What the client of a stream has: ?after= or Last-Event-ID, whichever is later. An EventSource
/// that was opened with ?after= keeps it in its address when it comes back with the id of what it
/// got meanwhile. Nothing if one of them is no number.
std::optional<std::uint64_t> asked_place(const http::Request& request);
http::Problem bad_place();

/// ?outputs=true
Outputs asked_outputs(const http::Request& request);

}  // namespace cellkeep::api
