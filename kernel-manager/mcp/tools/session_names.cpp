// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/tools/session_names.hpp"

#include "kernel-manager/mcp/limits.hpp"

#include <algorithm>

namespace cellkeep::mcp {

namespace asio = boost::asio;

namespace {

constexpr std::string_view kIdPrefix = "ses_";

bool is_id(std::string_view name) {
    return name.starts_with(kIdPrefix);
}

Error no_session(const std::string& name) {
    return {
        ErrorCode::kNotFound,
        "There is no session \"" + name + "\"; it may have ended.",
        "list_sessions shows those there are. run_code makes one for a new name."};
}

std::uint64_t restarts_of(const session::SessionInfo& info, const std::string& language) {
    const auto one =
        std::find_if(info.languages.begin(), info.languages.end(), [&](const auto& each) {
            return each.name == language;
        });
    return one == info.languages.end() ? 0 : one->restarts;
}

}  // namespace

bool is_session_name(std::string_view name) {
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '_' || c == '-';
    };
    return !name.empty() && name.size() <= kSessionNameBytesMax &&
           std::all_of(name.begin(), name.end(), allowed);
}

SessionNames::Session SessionNames::find_by_id(
    const http::Principal& principal, const std::string& id) const {
    Session session = service_.find(id);
    if (session != nullptr && !http::may_see(principal, session->info().owner)) {
        return nullptr;
    }
    return session;
}

Result<SessionNames::Session> SessionNames::find(
    const http::Principal& principal, const std::string& name) const {
    if (is_id(name)) {
        Session session = find_by_id(principal, name);
        return session == nullptr ? Result<Session>(no_session(name)) : Result<Session>(session);
    }
    const auto known = names_.find({principal.name, name});
    Session session = known == names_.end() ? nullptr : find_by_id(principal, known->second.id);
    return session == nullptr ? Result<Session>(no_session(name)) : Result<Session>(session);
}

asio::awaitable<Result<SessionNames::Opened>> SessionNames::open(
    http::Principal principal, std::string name, std::string language) {
    if (!is_session_name(name)) {
        co_return Error(
            ErrorCode::kInvalidArgument,
            "A session's name is 1 to " + std::to_string(kSessionNameBytesMax) +
                " letters, digits, dots, hyphens and underscores.");
    }
    if (is_id(name)) {
        auto found = find(principal, name);
        if (found.has_error()) {
            co_return found.error();
        }
        co_return Opened{std::move(found).value(), false, false};
    }
    const Key key{principal.name, name};
    const auto known = names_.find(key);
    if (known == names_.end()) {
        co_return co_await create(key, std::move(language), false);
    }
    known->second.used = ++uses_;
    if (known->second.creation != nullptr) {
        auto made = co_await Outcome::wait(known->second.creation);
        if (made.has_error()) {
            co_return made.error();
        }
        co_return Opened{std::move(made).value(), false, false};
    }
    if (Session session = find_by_id(principal, known->second.id)) {
        co_return Opened{std::move(session), false, false};
    }
    co_return co_await create(key, std::move(language), true);
}

asio::awaitable<Result<SessionNames::Opened>> SessionNames::create(
    Key key, std::string language, bool replaced) {
    forget_old(key.first);
    const auto outcome = std::make_shared<Outcome>(io_);
    names_[key] = Entry{"", outcome, ++uses_};
    session::SessionOptions options;
    if (!language.empty()) {
        options.language = std::move(language);
    }
    options.owner = key.first;
    options.metadata = {{"mcp_session", key.second}};
    auto created = co_await service_.create(std::move(options));
    if (created.has_error()) {
        names_.erase(key);
        outcome->set(created.error());
        co_return created.error();
    }
    Session session = std::move(created).value();
    Entry& entry = names_[key];
    entry.id = session->id();
    entry.creation = nullptr;
    outcome->set(session);
    co_return Opened{std::move(session), true, replaced};
}

/// An entry whose session is being made stays: others wait for it.
void SessionNames::forget_old(const std::string& owner) {
    std::size_t count = 0;
    auto oldest = names_.end();
    for (auto at = names_.lower_bound({owner, ""}); at != names_.end() && at->first.first == owner;
         ++at) {
        ++count;
        if (at->second.creation == nullptr &&
            (oldest == names_.end() || at->second.used < oldest->second.used)) {
            oldest = at;
        }
    }
    if (count >= kSessionNamesMax && oldest != names_.end()) {
        names_.erase(oldest);
    }
    forget_ended();
}

void SessionNames::forget_ended() {
    std::erase_if(
        restarts_, [this](const auto& each) { return service_.find(each.first) == nullptr; });
}

Status SessionNames::close(const http::Principal& principal, const std::string& name) {
    BOOST_OUTCOME_TRY(const Session session, find(principal, name));
    const std::string id = session->id();
    std::erase_if(names_, [&](const auto& each) { return each.second.id == id; });
    restarts_.erase(id);
    return service_.remove(id);
}

std::vector<std::pair<std::string, SessionNames::Session>> SessionNames::list(
    const http::Principal& principal) const {
    std::map<std::string, std::string> named;  // by id
    for (auto at = names_.lower_bound({principal.name, ""});
         at != names_.end() && at->first.first == principal.name;
         ++at) {
        named.emplace(at->second.id, at->first.second);
    }
    std::vector<std::pair<std::string, Session>> seen;
    for (Session& session : service_.list()) {
        if (http::may_see(principal, session->info().owner)) {
            const auto name = named.find(session->id());
            seen.emplace_back(
                name == named.end() ? session->id() : name->second, std::move(session));
        }
    }
    return seen;
}

State SessionNames::look(const session::Session& session, const std::string& language) {
    const std::uint64_t now = restarts_of(session.info(), language);
    auto& known = restarts_[session.id()];
    const auto [entry, first] = known.emplace(language, now);
    const bool lost = !first && now > entry->second;
    entry->second = std::max(entry->second, now);
    return lost ? State::kLost : State::kKept;
}

void SessionNames::expect_restart(const session::Session& session, const std::string& language) {
    ++restarts_[session.id()][language];
}

}  // namespace cellkeep::mcp
