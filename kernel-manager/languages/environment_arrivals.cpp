// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/environment_arrivals.hpp"

#include "kernel-manager/environments/name.hpp"
#include "kernel-manager/languages/named_environments.hpp"
#include "protocol/support/run_elsewhere.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace cellkeep::session {

namespace {

using environments::NamedEnvironment;

constexpr const char* kPythonKernel = "python";

/// One that is removed and made again is another one.
std::string identity_of(const NamedEnvironment& environment) {
    return environment.record.name + " " + environment.record.created_at;
}

Error no_watch(const char* what) {
    return {
        ErrorCode::kUnavailable,
        "watch for named environments: " + Error::from_errno(errno, what).message()};
}

}  // namespace

struct EnvironmentArrivals::Found {
    struct Refused {
        std::string identity;
        std::string why;
    };
    std::vector<KernelSpec> specs;
    std::vector<Refused> refused;
};

EnvironmentArrivals::EnvironmentArrivals(
    boost::asio::io_context& io, environments::EnvironmentStore store, Hooks hooks)
    : io_(io),
      store_(std::make_shared<environments::EnvironmentStore>(std::move(store))),
      hooks_(std::move(hooks)),
      changes_(io) {}

Result<std::shared_ptr<EnvironmentArrivals>> EnvironmentArrivals::create(
    boost::asio::io_context& io, environments::EnvironmentStore store, Hooks hooks) {
    UniqueFd fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (!fd) {
        return no_watch("inotify_init1");
    }
    // A record comes by a rename (EnvironmentStore::create()).
    if (::inotify_add_watch(fd.get(), store.names().c_str(), IN_MOVED_TO | IN_ONLYDIR) < 0) {
        return no_watch("inotify_add_watch");
    }
    std::shared_ptr<EnvironmentArrivals> made(
        new EnvironmentArrivals(io, std::move(store), std::move(hooks)));
    boost::system::error_code error;
    made->changes_.assign(fd.get(), error);
    if (error) {
        return Error(ErrorCode::kSystem, "watch for named environments: " + error.message());
    }
    (void)fd.release();
    return made;
}

void EnvironmentArrivals::begin() {
    boost::asio::co_spawn(
        io_, [self = shared_from_this()] { return self->work(); }, boost::asio::detached);
}

void EnvironmentArrivals::look_again() {
    again_ = true;
    boost::system::error_code ignored;  // Ignored, here and below: it is open.
    (void)changes_.cancel(ignored);
}

void EnvironmentArrivals::stop() {
    stopped_ = true;
    boost::system::error_code ignored;
    (void)changes_.cancel(ignored);
}

boost::asio::awaitable<void> EnvironmentArrivals::work() {
    const auto self = shared_from_this();
    while (!stopped_) {
        again_ = false;
        co_await look();
        if (stopped_ || again_) {
            continue;
        }
        boost::system::error_code cancelled;  // that is how look_again() and stop() wake us
        co_await changes_.async_wait(
            boost::asio::posix::stream_descriptor::wait_read,
            boost::asio::redirect_error(boost::asio::use_awaitable, cancelled));
        // What has happened is not asked for: all names are looked at.
        std::array<char, 4096> events{};
        while (::read(changes_.native_handle(), events.data(), events.size()) > 0) {
        }
    }
}

boost::asio::awaitable<void> EnvironmentArrivals::look() {
    const std::optional<KernelSpec> python = hooks_.python();
    if (!python) {
        co_return;
    }
    std::set<std::string> known = refused_;
    for (std::string& kernel : hooks_.offered()) {
        known.insert(std::move(kernel));
    }
    std::function<std::optional<Found>()> work =
        [store = store_, python = *python, known = std::move(known)]() -> std::optional<Found> {
        return find_new(*store, python, known);
    };
    Found found = co_await run_elsewhere<Found>(io_, thread_, std::move(work));
    if (stopped_) {
        co_return;
    }
    for (Found::Refused& one : found.refused) {
        hooks_.log(one.why);
        refused_.insert(std::move(one.identity));
    }
    for (KernelSpec& spec : found.specs) {
        const std::string name = spec.environment.name;
        const std::string remark = spec.remark.empty() ? "" : "; " + spec.remark;
        const bool offered = hooks_.offer(std::move(spec));
        hooks_.log(
            "the environment " + name +
            (offered ? " is offered" + remark
                     : " is not offered: the sessions have no room for it"));
    }
}

EnvironmentArrivals::Found EnvironmentArrivals::find_new(
    environments::EnvironmentStore& store,
    const KernelSpec& python,
    const std::set<std::string>& known) {
    Found found;
    const auto all = store.list();
    if (all.has_error()) {
        // Another environment, or the next start, tries again.
        found.refused.push_back({"", "named environments: " + all.error().message()});
        return found;
    }
    for (const NamedEnvironment& one : all.value()) {
        const std::string& name = one.record.name;
        if (known.contains(environments::offered_name(kPythonKernel, name)) ||
            known.contains(identity_of(one))) {
            continue;
        }
        auto spec = find_named_spec(store, python, one);
        if (spec.has_error()) {
            found.refused.push_back(
                {identity_of(one),
                 "the environment " + name + " is not offered: " + spec.error().message()});
            continue;
        }
        found.specs.push_back(std::move(spec).value());
    }
    return found;
}

}  // namespace cellkeep::session
