// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/tools/session_names.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "kernel-manager/mcp/tools/tool_answer.hpp"

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
        "There is no session \"" + show_text(name).text + "\"; it may have ended.",
        "list_sessions shows those there are. run_code makes one for a new name."};
}

Error no_name() {
    return {
        ErrorCode::kInvalidArgument,
        "A session's name is 1 to " + std::to_string(kSessionNameBytesMax) +
            " letters, digits, dots, hyphens and underscores."};
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
    http::Principal principal, std::string name, NewSession wanted) {
    if (!is_session_name(name)) {
        co_return no_name();
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
        co_return co_await create(key, std::move(wanted), false);
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
    co_return co_await create(key, std::move(wanted), true);
}

asio::awaitable<Result<SessionNames::Opened>> SessionNames::create(
    Key key, NewSession wanted, bool replaced) {
    const auto outcome = begin_creation(key);
    session::SessionOptions options;
    if (!wanted.language.empty()) {
        options.language = std::move(wanted.language);
    }
    options.branches = wanted.branches;
    // How long one run takes is said with the run: long ones are read on.
    const session::LimitCeilings most = service_.ceilings();
    options.limits.wall = most.wall;
    options.limits.cpu = most.cpu;
    options.owner = key.first;
    options.metadata = {{"mcp_session", key.second}};
    const auto created = co_await service_.create(std::move(options));
    end_creation(key, created, replaced);
    outcome->set(created);
    if (created.has_error()) {
        co_return created.error();
    }
    co_return Opened{created.value(), true, replaced};
}

Status SessionNames::check_free(const http::Principal& principal, const std::string& name) const {
    if (!is_session_name(name) || is_id(name)) {
        return no_name();
    }
    const auto known = names_.find({principal.name, name});
    if (known != names_.end() &&
        (known->second.creation != nullptr || find_by_id(principal, known->second.id) != nullptr)) {
        return Error(
            ErrorCode::kConflict,
            "There is a session \"" + name + "\" already.",
            "Use another name, or close it first.");
    }
    return ok();
}

asio::awaitable<Result<SessionNames::Session>> SessionNames::branch(
    http::Principal principal, std::string name, session::BranchOrder order) {
    if (const Status free = check_free(principal, name); free.has_error()) {
        co_return free.error();
    }
    const Key key{principal.name, std::move(name)};
    const bool replaced = names_.contains(key);
    const auto outcome = begin_creation(key);
    const auto made = co_await service_.branch(std::move(order));
    end_creation(key, made, replaced);
    outcome->set(made);
    co_return made;
}

std::shared_ptr<SessionNames::Outcome> SessionNames::begin_creation(const Key& key) {
    forget_old(key.first);
    auto outcome = std::make_shared<Outcome>(io_);
    names_[key] = Entry{"", outcome, ++uses_};
    return outcome;
}

void SessionNames::end_creation(const Key& key, const Result<Session>& made, bool replaced) {
    if (made.has_error() && !replaced) {
        names_.erase(key);
        return;
    }
    Entry& entry = names_[key];
    entry.id = made.has_error() ? std::string() : made.value()->id();
    entry.creation = nullptr;
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

nlohmann::json SessionNames::pass_on() const {
    nlohmann::json names = nlohmann::json::array();
    for (const auto& [key, entry] : names_) {
        if (!entry.creation) {
            names.push_back(
                {{"principal", key.first},
                 {"name", key.second},
                 {"id", entry.id},
                 {"used", entry.used}});
        }
    }
    return {{"names", std::move(names)}, {"uses", uses_}, {"restarts", restarts_}};
}

void SessionNames::go_on(const nlohmann::json& passed) {
    for (const nlohmann::json& name : passed.at("names")) {
        names_.insert_or_assign(
            Key(name.at("principal").get<std::string>(), name.at("name").get<std::string>()),
            Entry{name.at("id").get<std::string>(), nullptr, name.at("used").get<std::uint64_t>()});
    }
    uses_ = passed.at("uses").get<std::uint64_t>();
    restarts_ = passed.at("restarts").get<decltype(restarts_)>();
}

}  // namespace cellkeep::mcp
