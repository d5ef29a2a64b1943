// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/one_shots.hpp"

#include "kernel-manager/environments/name.hpp"
#include "kernel-manager/execution/execution_book.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "protocol/json.hpp"
#include "protocol/limits.hpp"
#include "protocol/sha256.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>

namespace cellkeep::api {

namespace asio = boost::asio;

namespace {

std::uint64_t bytes_of(const OneShot& run) {
    const auto& result = run.execution->result();
    return run.execution->events().bytes() + (result ? result->retained_bytes : 0);
}

/// A file by reference is the same one only if its digest is named.
bool has_known_inputs(const std::vector<session::InputFile>& files) {
    return std::all_of(files.begin(), files.end(), [](const session::InputFile& file) {
        return file.from.empty() || !file.sha256.empty();
    });
}

/// Code that ran to its end, well or badly. A timeout or a death may be the host's doing.
bool may_be_cached(const session::ExecutionResult& result) {
    return result.status == session::ExecutionStatus::kOk ||
           result.status == session::ExecutionStatus::kError;
}

}  // namespace

std::string OneShots::cache_key_of(const OneShotOrder& order, const std::string& owner) const {
    const session::KernelSpec* spec = backend_.find_spec(
        environments::offered_name(order.options.language, order.options.environment));
    if (order.cache_ttl.count() == 0 || spec == nullptr || !has_known_inputs(order.options.files)) {
        return {};
    }
    protocol::Sha256 digest;
    digest.update_field(owner);
    digest.update_field(order.options.language);
    digest.update_field(spec->environment.digest);
    // A named environment has the default one behind it.
    for (const sandbox::PrivateImage& image : spec->images) {
        digest.update_field(image.digest);
    }
    digest.update_field(order.digest);
    return digest.finish();
}

asio::awaitable<Result<OneShots::Begun>> OneShots::begin(
    OneShotOrder order, const std::string& owner) {
    forget_old();
    const std::string cache_key = cache_key_of(order, owner);
    const std::string key = order.execution.request.idempotency_key;
    if (key.empty()) {
        co_return co_await run(std::move(order), cache_key);
    }
    Memory& memory = owners_[owner];
    const std::string digest = order.digest;
    if (const auto seen = memory.keys.find(key); seen != memory.keys.end()) {
        co_return co_await repeat(seen->second, digest);
    }
    const auto executor = co_await asio::this_coro::executor;
    auto& io = static_cast<asio::io_context&>(executor.context());
    const auto outcome = std::make_shared<Outcome>(io);
    memory.keys.emplace(key, Keyed{digest, outcome, "", false});
    Result<Begun> begun = co_await run(std::move(order), cache_key);
    Keyed& keyed = memory.keys.at(key);  // one that waits is not forgotten
    if (begun.has_error()) {
        memory.keys.erase(key);  // nothing ran: the key is free again
    } else {
        keyed.outcome = nullptr;
        keyed.id = begun.value().run.execution->id();
        keyed.cached = begun.value().cached;
        memory.keys_by_age.push_back(key);
        forget_keys(memory, bounds_.keys);
    }
    outcome->set(begun);
    co_return begun;
}

asio::awaitable<Result<OneShots::Begun>> OneShots::repeat(Keyed seen, const std::string& digest) {
    if (seen.digest != digest) {
        co_return Error::in_field(
            ErrorCode::kInvalidArgument, "idempotency_key", "it came before with another body");
    }
    if (seen.outcome != nullptr) {
        Result<Begun> begun = co_await Outcome::wait(seen.outcome);
        if (begun.has_value()) {
            begun.value().from = From::kKey;
        }
        co_return begun;
    }
    const auto run = find(seen.id);
    if (run == nullptr) {
        co_return session::forgotten_answer(seen.id);
    }
    co_return Begun{*run, From::kKey, seen.cached};
}

void OneShots::forget_keys(Memory& memory, std::size_t most) {
    while (memory.keys_by_age.size() > most) {
        memory.keys.erase(memory.keys_by_age.front());
        memory.keys_by_age.pop_front();
    }
}

asio::awaitable<Result<OneShots::Begun>> OneShots::run(
    OneShotOrder order, const std::string& cache_key) {
    if (const auto hit = cache_.find(cache_key);
        !cache_key.empty() && hit != cache_.end() && Clock::now() < hit->second.until) {
        co_return Begun{hit->second.run, From::kCache, true};
    }
    const auto executor = co_await asio::this_coro::executor;
    auto& io = static_cast<asio::io_context&>(executor.context());
    const std::string owner = order.options.owner;
    const auto created = co_await backend_.create(std::move(order.options));
    if (created.has_error()) {
        co_return created.error();
    }
    const std::shared_ptr<session::Session>& session = created.value();
    // Here the key is this registry's business.
    order.execution.request.idempotency_key.clear();
    const auto begun = session->begin(std::move(order.execution.request));
    if (begun.has_error()) {
        (void)backend_.remove(session->id());  // Ignored: it may have ended by itself.
        co_return begun.error();
    }
    OneShot run{begun.value(), owner, session, std::make_shared<Completion<bool>>(io)};
    runs_.emplace(run.execution->id(), Kept{run, 0, {}});
    asio::co_spawn(executor, keep(run, cache_key, order.cache_ttl), asio::detached);
    co_return Begun{run, From::kRun, false};
}

asio::awaitable<void> OneShots::keep(OneShot run, std::string cache_key, std::chrono::seconds ttl) {
    const session::FinishedExecution result = co_await run.execution->wait();
    (void)backend_.remove(result->session_id);   // Ignored: it may have ended by itself.
    Kept& kept = runs_.at(run.execution->id());  // only what has ended is forgotten
    kept.ended_at = Clock::now();
    kept.bytes = bytes_of(run);
    Memory& memory = owners_[run.owner];
    memory.finished.push_back(run.execution->id());
    memory.bytes += kept.bytes;
    bytes_ += kept.bytes;
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

void OneShots::forget_oldest(Memory& memory) {
    const auto oldest = runs_.find(memory.finished.front());
    memory.bytes -= oldest->second.bytes;
    bytes_ -= oldest->second.bytes;
    runs_.erase(oldest);
    memory.finished.pop_front();
}

void OneShots::forget_old() {
    const auto now = Clock::now();
    std::erase_if(cache_, [&](const auto& entry) { return entry.second.until <= now; });
    const auto is_past = [&](const Memory& memory) {
        return memory.finished.size() > bounds_.runs || memory.bytes > bounds_.bytes;
    };
    for (auto& [owner, memory] : owners_) {
        // The newest is kept whatever its size.
        while (memory.finished.size() > 1 && is_past(memory)) {
            forget_oldest(memory);
        }
        while (!memory.finished.empty() &&
               now - runs_.at(memory.finished.front()).ended_at > limits::kOneShotMemory) {
            forget_oldest(memory);
        }
    }
    while (bytes_ > bounds_.all_bytes) {
        auto most =
            std::max_element(owners_.begin(), owners_.end(), [](const auto& a, const auto& b) {
                return a.second.bytes < b.second.bytes;
            });
        forget_oldest(most->second);
    }
}

std::shared_ptr<OneShot> OneShots::find(const std::string& execution_id) {
    if (const auto kept = runs_.find(execution_id); kept != runs_.end()) {
        return std::make_shared<OneShot>(kept->second.run);
    }
    for (const auto& [key, cached] : cache_) {
        if (cached.run.execution->id() == execution_id) {
            return std::make_shared<OneShot>(cached.run);
        }
    }
    return nullptr;
}

}  // namespace cellkeep::api
