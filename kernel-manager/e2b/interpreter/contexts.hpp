// SPDX-License-Identifier: Apache-2.0
//
// The contexts of sandboxes: names that E2B's clients have for the interpreters of a session. Each
// language has one that is there from the start; others are interpreters beside it
// (session::language_of_interpreter). Owns the names only. io_context thread only.
#pragma once

#include "kernel-manager/session/session_info.hpp"
#include "protocol/support/result.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::e2b {

struct Context {
    std::string id;           // of the one that each language has: its language
    std::string language;     // "python"
    std::string interpreter;  // what the session calls it: "python", "python:2"
    std::string directory;    // absolute, where it began
};

class Contexts {
 public:
    /// The language that a client means ("js", "Python"); nullopt: the session has none such.
    static std::optional<std::string> language_of(
        std::string_view asked, const session::SessionInfo& info);

    /// In the order in which they were made; first those of Python and JavaScript, which the
    /// clients look for, and of other languages that have been used.
    std::vector<Context> list(const session::SessionInfo& info) const;
    std::optional<Context> find(const session::SessionInfo& info, const std::string& id) const;
    /// A new one. An interpreter whose context was removed is used again; `reused` then says that
    /// it must begin anew. kLimitExceeded.
    struct Made {
        Context context;
        bool reused = false;
    };
    Result<Made> make(
        const std::string& session_id, const std::string& language, std::string directory);
    /// One that has just been made and could not begin. A new interpreter of it was never started,
    /// and is forgotten; one that was used before can be used again.
    void take_back(const std::string& session_id, const Made& made);
    /// kNotFound. Those that are there from the start cannot be removed: kConflict.
    Result<Context> remove(const session::SessionInfo& info, const std::string& id);
    void forget(const std::string& session_id) { made_.erase(session_id); }

    struct Own {
        std::vector<Context> contexts;
        std::vector<Context> removed;          // whose interpreters wait for a new context
        std::map<std::string, unsigned> last;  // the highest number, by language; "": of names
    };
    using BySession = std::map<std::string, Own>;
    /// For another program in the server's process.
    const BySession& all() const { return made_; }
    /// Of the program before, instead of what is here.
    void go_on(BySession made) { made_ = std::move(made); }

 private:
    BySession made_;
};

}  // namespace cellkeep::e2b
