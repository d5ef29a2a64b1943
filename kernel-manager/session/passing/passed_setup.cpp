// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/passing/passed_setup.hpp"

#include "kernel-manager/session/passing/passed_specs.hpp"
#include "sandbox/sandbox.hpp"

#include <chrono>
#include <string>
#include <utility>

namespace cellkeep::session {

using nlohmann::json;

Result<SharedAgain> share_again(PassedSessions& passed) {
    SharedAgain shared;
    for (sandbox::PassedSandbox& zygote : std::exchange(passed.zygotes, {})) {
        shared.zygotes.push_back(sandbox::Zygote::take_over(std::move(zygote)));
    }
    shared.leases = std::exchange(passed.leases, {});
    try {
        for (const json& catalog : passed.catalogs) {
            shared.catalogs.push_back(
                std::make_shared<const KernelCatalog>(read_catalog(catalog, shared)));
        }
    } catch (const json::exception& failure) {
        return Error(ErrorCode::kProtocol, std::string("passed catalog: ") + failure.what());
    }
    return shared;
}

Result<SessionSetup> read_setup(const PassedSession& passed, const SharedAgain& shared) {
    SessionSetup setup;
    setup.id = passed.id;
    setup.kernel_id = passed.kernel_id;
    setup.branch = passed.branch;
    try {
        setup.options = read_options(passed.state.at("options"));
        setup.spec = read_spec(passed.state.at("spec"), shared);
        setup.mounted = passed.state.at("mounted").get<Session::Inputs>();
        const json& catalog = passed.state.at("catalog");
        if (!catalog.is_null() && catalog.get<std::size_t>() < shared.catalogs.size()) {
            setup.catalog = shared.catalogs[catalog.get<std::size_t>()];
        }
    } catch (const json::exception& failure) {
        return Error(ErrorCode::kProtocol, std::string("passed session: ") + failure.what());
    }
    return setup;
}

bool is_paused(const PassedSession& passed) {
    return passed.state.is_object() && passed.state.value("paused", json()) == json(true);
}

sandbox::Sandbox take_sandbox(PassedSession& passed, std::shared_ptr<sandbox::Zygote> zygote) {
    auto taken = sandbox::Sandbox::take_over(std::move(passed.sandbox), std::move(zygote));
    if (is_paused(passed)) {
        // It is frozen already: only the object does not know it, and would not thaw what it kills.
        // Ignored: what is frozen stays so.
        (void)taken.freeze(std::chrono::milliseconds(0)).has_value();
    }
    return taken;
}

void end_passed(PassedSessions passed) {
    std::vector<sandbox::Sandbox> sandboxes;
    for (PassedSession& session : passed.sessions) {
        sandboxes.push_back(take_sandbox(session));
    }
    for (PassedRemains& remains : passed.remains) {
        sandboxes.push_back(sandbox::Sandbox::take_over(std::move(remains.sandbox)));
    }
    for (sandbox::PassedSandbox& zygote : passed.zygotes) {
        sandboxes.push_back(sandbox::Sandbox::take_over(std::move(zygote)));
    }
    for (sandbox::Sandbox& sandbox : sandboxes) {
        sandbox.begin_destroy();  // they die together
    }
}

}  // namespace cellkeep::session
