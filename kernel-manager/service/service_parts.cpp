// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/service_parts.hpp"

#include "kernel-manager/environments/name.hpp"
#include "kernel-manager/languages/named_environments.hpp"
#include "kernel-manager/service/zygote_recipe.hpp"
#include "kernel-manager/warm/sandbox_maker.hpp"
#include "kernel-manager/warm/sandbox_remover.hpp"
#include "kernel-manager/warm/warm_start.hpp"

#include <chrono>
#include <utility>

namespace cellkeep::session {

using std::chrono::steady_clock;

std::shared_ptr<Service::Parts> Service::Parts::create(
    boost::asio::io_context& io, ServiceConfig config) {
    auto parts = std::make_shared<Parts>();
    parts->io_ = &io;
    parts->changing_ = std::make_shared<ServiceConfig>(std::move(config));
    parts->config = parts->changing_;
    parts->preparation = std::make_shared<Preparation>(io, parts->config->preparing);
    parts->log = [log = parts->config->log](const std::string& line) {
        if (log) {
            log(line);
        }
    };
    parts->make_admission();
    parts->make_teardown(io);
    parts->make_warm_starts(io);
    parts->make_factory_and_starter(io);
    parts->make_spares(io);
    parts->make_registry();
    return parts;
}

void Service::Parts::begin() {
    warm->begin();
    readiness->begin();
    spares->pool()->fill();
}

void Service::Parts::provide(KernelCatalog catalog) {
    // The makers' threads read the configuration, too, but not the catalog.
    former_ = std::exchange(changing_->catalog, std::move(catalog));
    factory->read_catalog();
    warm->replace(make_zygote_keepers());
    if (preparation->is_preparing()) {
        readiness->restart_clock(steady_clock::now());
        preparation->end();
        begin();
    } else {
        spares->pool()->renew();
    }
}

bool Service::Parts::offer(KernelSpec spec) {
    const std::string kernel = offered_by(spec);
    if (config->catalog.find(kernel) != nullptr) {
        return true;
    }
    const bool forkable = spec.forkable;
    changing_->catalog.forget_withheld(kernel);
    changing_->catalog.offer(std::move(spec));
    factory->read_catalog();
    if (config->catalog.find(kernel) == nullptr) {
        return false;
    }
    if (config->zygotes && forkable) {
        warm->add(kernel, zygote_on_demand(kernel));
    }
    return true;
}

void Service::Parts::make_admission() {
    const std::weak_ptr<Parts> weak = weak_from_this();
    admission = std::make_shared<Admission>(
        config,
        Admission::Room{
            .is_removing =
                [weak] {
                    const auto parts = weak.lock();
                    return parts && parts->teardown->is_removing();
                },
            .wait_for_removal =
                [weak](steady_clock::time_point deadline) -> boost::asio::awaitable<void> {
                if (const auto parts = weak.lock()) {
                    co_await parts->teardown->wait_for_any(deadline);
                }
            },
            .end_spare =
                [weak] {
                    const auto parts = weak.lock();
                    return parts && parts->spares->pool()->give_way();
                },
            .is_making_spare =
                [weak] {
                    const auto parts = weak.lock();
                    return parts && parts->spares->pool()->is_making();
                },
            .wait_for_spare = [weak]() -> boost::asio::awaitable<void> {
                if (const auto parts = weak.lock()) {
                    (void)co_await parts->spares->pool()->wait_for_making();
                }
            }});
}

void Service::Parts::make_teardown(boost::asio::io_context& io) {
    const auto remover = std::make_shared<SandboxRemover>(io);
    teardown = SessionTeardown::create(
        io,
        {.destroy =
             [remover](SessionTeardown::SandboxPtr sandbox) {
                 return SandboxRemover::destroy(remover, std::move(sandbox));
             },
         .retire =
             [remover](SessionTeardown::SandboxPtr sandbox) {
                 return SandboxRemover::retire(remover, std::move(sandbox));
             },
         .wait_for_attempts = [remover] { remover->wait(); },
         .destroy_now =
             [](const SessionTeardown::SandboxPtr& sandbox) {
                 // The next server sweeps what is left.
                 (void)sandbox->destroy(sandbox::kDestroyPatience);
             },
         .unexpected_end =
             [](const SessionTeardown::SandboxPtr& sandbox) { return sandbox->unexpected_end(); },
         .on_gone =
             [weak = weak_from_this()] {
                 if (const auto parts = weak.lock()) {
                     parts->spares->pool()->fill();  // there is room again
                 }
             },
         .log = log});
}

std::shared_ptr<WarmStart> Service::Parts::make_warm_start(
    const KernelSpec& spec, std::function<void()> on_ready) const {
    const SessionLanguages shown = combine_languages(config->catalog, spec);
    return WarmStart::create(
        *io_,
        {.make_full = zygote_maker(spec, Libraries::kImported, shown, config),
         .make_bare = config->preload.empty() ? WarmStart::Make()
                                              : zygote_maker(spec, Libraries::kNone, shown, config),
         .on_ready = std::move(on_ready),
         .log = [log = log, kernel = offered_by(spec)](
                    const std::string& line) { log(kernel + ": " + line); }},
        config->zygote_bounds);
}

WarmStarts::OnDemand Service::Parts::zygote_on_demand(const std::string& kernel) {
    return [weak = weak_from_this(), kernel]() -> std::shared_ptr<WarmStart> {
        const auto parts = weak.lock();
        return parts ? parts->make_warm_start(*parts->config->catalog.find(kernel), [] {})
                     : nullptr;
    };
}

WarmStarts::Kernels Service::Parts::make_zygote_keepers() {
    const std::weak_ptr<Parts> weak = weak_from_this();
    WarmStarts::Kernels kernels;
    for (const std::string& kernel : config->catalog.languages()) {
        const KernelSpec& spec = *config->catalog.find(kernel);
        if (!config->zygotes || !spec.forkable) {
            continue;
        }
        if (is_named(spec)) {
            kernels.on_demand.emplace(kernel, zygote_on_demand(kernel));
            continue;
        }
        kernels.at_once.emplace(kernel, make_warm_start(spec, [weak] {
                                    if (const auto parts = weak.lock()) {
                                        parts->readiness->review(steady_clock::now());
                                    }
                                }));
    }
    return kernels;
}

void Service::Parts::make_warm_starts(boost::asio::io_context& io) {
    maker = std::make_shared<SandboxMaker>(io);
    warm = WarmStarts::create(
        make_zygote_keepers(),
        {.make_sandbox =
             [maker = maker](sandbox::Policy policy, WarmStarts::ZygotePtr zygote) {
                 return SandboxMaker::make(maker, std::move(policy), std::move(zygote));
             },
         .log = log});
    readiness = std::make_shared<Readiness>(
        steady_clock::now(), [warm = warm] { return warm->are_ready(); }, config->log_ready);
}

void Service::Parts::make_factory_and_starter(boost::asio::io_context& io) {
    factory = SessionFactory::create(
        io,
        config,
        [warm = warm](std::string language, sandbox::Policy policy) {
            return warm->make_sandbox(std::move(language), std::move(policy));
        },
        [maker = maker](sandbox::Policy policy, std::shared_ptr<sandbox::BranchLauncher> launcher) {
            return SandboxMaker::make_branch(maker, std::move(policy), std::move(launcher));
        });
    starter = SessionStarter::create(
        io,
        {.make = [factory = factory](
                     SessionFactory::Order order) { return factory->make(std::move(order)); },
         .note_start =
             [warm = warm](const ManagedSession& session, bool started) {
                 const SessionOptions& options = session.options();
                 const std::string kernel =
                     environments::offered_name(options.language, options.environment);
                 warm->note_start(kernel, session.zygote(), started);
             },
         .remove = [teardown = teardown](
                       SessionEntry entry,
                       Death reason) { teardown->begin(std::move(entry), reason); }});
}

void Service::Parts::make_spares(boost::asio::io_context& io) {
    spares = SpareSessions::create(
        io,
        config->prespawn,
        config->prespawn_most,
        {.check = [admission = admission](
                      const SessionOptions& options) { return admission->check(options); },
         .has_room = [admission = admission](
                         std::size_t coming) { return admission->has_room_for_spare(coming); },
         .claim_slot = [admission = admission] { return admission->claim_slot(); },
         .wait_for_zygote =
             [warm = warm](std::string kernel) {
                 return warm->wait_until_ready(std::move(kernel));
             },
         .start =
             [starter = starter](
                 SessionEntry& entry, SessionFactory::Order order, SessionStarter::OnEnd on_end) {
                 return starter->start(entry, std::move(order), std::move(on_end));
             },
         .adopt =
             [starter = starter](
                 SessionEntry& entry, SessionOptions options, SessionStarter::OnEnd on_end) {
                 return starter->adopt(entry, std::move(options), std::move(on_end));
             },
         .remove = [teardown = teardown](
                       SessionEntry entry,
                       Death reason) { teardown->begin(std::move(entry), reason); },
         .is_shutting_down = [admission = admission] { return admission->is_closed(); },
         .log = log,
         .on_settled = [readiness =
                            readiness] { readiness->note_spares_settled(steady_clock::now()); }});
}

void Service::Parts::make_registry() {
    registry = std::make_shared<SessionRegistry>(
        [teardown = teardown, weak = weak_from_this()](SessionEntry entry, Death reason) {
            teardown->begin(std::move(entry), reason);
            if (const auto parts = weak.lock()) {
                parts->spares->pool()->fill();
            }
        });
}

}  // namespace cellkeep::session
