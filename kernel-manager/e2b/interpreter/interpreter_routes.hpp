// SPDX-License-Identifier: Apache-2.0
//
// E2B's code interpreter (template/server/main.py) over the executions of a session: POST /execute,
// and /contexts. io_context thread only.
#pragma once

#include "kernel-manager/e2b/interpreter/contexts.hpp"
#include "kernel-manager/e2b/wire/sandbox_door.hpp"
#include "kernel-manager/http/router.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <optional>
#include <string>

namespace cellkeep::e2b {

/// Which context a request is about: that of the id, or the one that every sandbox has for a
/// language; without both, the one of the sandbox's own language.
struct ContextChoice {
    std::optional<std::string> id;
    std::optional<std::string> language;
};

class InterpreterRoutes {
 public:
    /// door must outlive this, and this the router.
    explicit InterpreterRoutes(const SandboxDoor& door) : door_(door) {}
    InterpreterRoutes(const InterpreterRoutes&) = delete;
    InterpreterRoutes& operator=(const InterpreterRoutes&) = delete;
    ~InterpreterRoutes() = default;

    void add_to(http::Router& router);
    void forget(const std::string& session_id) { contexts_.forget(session_id); }
    Contexts& contexts() { return contexts_; }
    const Contexts& contexts() const { return contexts_; }

 private:
    using Answer = boost::asio::awaitable<http::Response>;
    using Session = std::shared_ptr<session::Session>;

    Answer execute(http::Request& request, Session session);
    Answer list(http::Request& request, Session session);
    Answer create(http::Request& request, Session session);
    Answer remove(http::Request& request, Session session);
    Answer restart(http::Request& request, Session session);
    Result<Context> choose(const session::Session& session, const ContextChoice& choice) const;

    const SandboxDoor& door_;
    Contexts contexts_;
};

}  // namespace cellkeep::e2b
