// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/agent/one_shots.hpp"

#include "protocol/json.hpp"
#include "protocol/limits.hpp"
#include "protocol/sha256.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>

namespace cellkeep::agent {

namespace asio = boost::asio;

namespace {

std::uint64_t bytes_of(const OneShot& run) {
    const auto& result = run.execution->result();
    return run.execution->events().bytes() + (result ? result->retained_bytes : 0);
}

/// The body without what does not change the run.
std::string canonical(nlohmann::json body) {
    for (const char* name :
         {"idempotency_key", "cache_ttl_s", "outputs", "on_disconnect", "reasoning", "metadata"}) {
        body.erase(name);
    }
    return protocol::dump_json(body);
}

/// A file by reference is the same one only if its digest is named.
bool has_known_inputs(const nlohmann::json& body) {
    const auto files = body.find("files");
    return files == body.end() || std::all_of(files->begin(), files->end(), [](const auto& file) {
               return !file.contains("from") || file.contains("sha256");
           });
}

/// Code that ran to its end, well or badly. A timeout or a death may be the host's doing.
bool may_be_cached(const session::ExecutionResult& result) {
    return result.status == session::ExecutionStatus::kOk ||
           result.status == session::ExecutionStatus::kError;
}

}  // namespace

std::string OneShots::cache_key_of(
    const OneShotOrder& order, const nlohmann::json& body, const std::string& owner) const {
    const session::KernelSpec* spec = backend_.find_spec(order.options.language);
    if (order.cache_ttl.count() == 0 || spec == nullptr || !has_known_inputs(body)) {
        return {};
    }
    protocol::Sha256 digest;
    digest.update_field(owner);
    digest.update_field(order.options.language);
    digest.update_field(spec->environment.digest);
    digest.update_field(canonical(body));
    return digest.finish();
}

asio::awaitable<Result<OneShots::Begun>> OneShots::begin(
    OneShotOrder order, nlohmann::json body, const std::string& owner) {
    forget_old();
    const std::string cache_key = cache_key_of(order, body, owner);
    const std::string& idempotency_key = order.execution.request.idempotency_key;
    if (idempotency_key.empty()) {
        co_return co_await run(std::move(order), cache_key);
    }
    const std::string key = owner + '\n' + idempotency_key;
    const std::string digest = protocol::sha256_hex(canonical(body));
    if (const auto seen = keys_.find(key); seen != keys_.end()) {
        if (seen->second.digest != digest) {
            co_return Error(
                ErrorCode::kInvalidArgument, "idempotency_key: it came before with another body");
        }
        const auto outcome = seen->second.outcome;
        co_return co_await Outcome::wait(outcome);
    }
    const auto executor = co_await asio::this_coro::executor;
    auto& io = static_cast<asio::io_context&>(executor.context());
    const auto outcome = std::make_shared<Outcome>(io);
    keys_.emplace(key, Keyed{digest, outcome});
    Result<Begun> begun = co_await run(std::move(order), cache_key);
    if (begun.has_error()) {
        keys_.erase(key);  // nothing ran: the key is free again
    }
    outcome->set(begun);
    co_return begun;
}

asio::awaitable<Result<OneShots::Begun>> OneShots::run(
    OneShotOrder order, const std::string& cache_key) {
    if (const auto hit = cache_.find(cache_key);
        !cache_key.empty() && hit != cache_.end() && Clock::now() < hit->second.until) {
        co_return Begun{hit->second.run, true};
    }
    const auto executor = co_await asio::this_coro::executor;
    auto& io = static_cast<asio::io_context&>(executor.context());
    const std::string owner = order.options.owner;
    const auto created = co_await backend_.create(std::move(order.options));
    if (created.has_error()) {
        co_return created.error();
    }
    const std::shared_ptr<session::Session> session = created.value();
    // Here the key is this registry's business.
    order.execution.request.idempotency_key.clear();
    const auto begun = session->begin(std::move(order.execution.request));
    if (begun.has_error()) {
        (void)backend_.remove(session->id());  // Ignored: gone is what it shall be.
        co_return begun.error();
    }
    OneShot run{begun.value(), owner, session, std::make_shared<session::Completion<bool>>(io)};
    runs_.emplace_back(run, Clock::time_point::max());
    asio::co_spawn(executor, keep(run, cache_key, order.cache_ttl), asio::detached);
    co_return Begun{run, false};
}

asio::awaitable<void> OneShots::keep(OneShot run, std::string cache_key, std::chrono::seconds ttl) {
    const session::FinishedExecution result = co_await run.execution->wait();
    (void)backend_.remove(result->session_id);  // Ignored: gone is what it shall be.
    for (auto& [one, ended_at] : runs_) {
        if (one.execution == run.execution) {
            ended_at = Clock::now();
        }
    }
    if (!cache_key.empty() && may_be_cached(*result)) {
        store_answer(run, cache_key, ttl);
    }
    run.gone->set(true);
    forget_old();
}

void OneShots::store_answer(const OneShot& run, const std::string& key, std::chrono::seconds ttl) {
    cache_.insert_or_assign(key, Cached{run, Clock::now() + ttl});
    const auto bytes = [this] {
        std::uint64_t all = 0;
        for (const auto& [name, cached] : cache_) {
            all += bytes_of(cached.run);
        }
        return all;
    };
    while (cache_.size() > limits::kCachedAnswersMax ||
           (cache_.size() > 1 && bytes() > limits::kCachedAnswersBytesMax)) {
        // What ends first goes first.
        cache_.erase(
            std::min_element(cache_.begin(), cache_.end(), [](const auto& a, const auto& b) {
                return a.second.until < b.second.until;
            }));
    }
}

void OneShots::forget_old() {
    const auto now = Clock::now();
    std::erase_if(cache_, [&](const auto& entry) { return entry.second.until <= now; });
    const auto is_old = [&](const auto& entry) {
        return entry.second != Clock::time_point::max() &&
               now - entry.second > limits::kOneShotMemory;
    };
    std::erase_if(runs_, is_old);
    std::size_t finished = 0;
    std::uint64_t bytes = 0;
    for (std::size_t i = runs_.size(); i-- > 0;) {
        if (runs_[i].second == Clock::time_point::max()) {
            continue;
        }
        ++finished;
        bytes += bytes_of(runs_[i].first);
        if (finished > limits::kOneShotsMax ||
            (finished > 1 && bytes > limits::kOneShotsBytesMax)) {
            runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
    // A key means something as long as its execution is known.
    std::erase_if(keys_, [this](const auto& entry) {
        const auto& outcome = entry.second.outcome;
        if (!outcome->done()) {
            return false;
        }
        const auto& value = outcome->value();
        return value.has_value() && find(value.value().run.execution->id()) == nullptr;
    });
}

std::shared_ptr<OneShot> OneShots::find(const std::string& execution_id) {
    for (const auto& [run, ended_at] : runs_) {
        if (run.execution->id() == execution_id) {
            return std::make_shared<OneShot>(run);
        }
    }
    for (const auto& [key, cached] : cache_) {
        if (cached.run.execution->id() == execution_id) {
            return std::make_shared<OneShot>(cached.run);
        }
    }
    return nullptr;
}

}  // namespace cellkeep::agent
