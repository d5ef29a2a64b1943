// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/front.hpp"

#include <utility>

namespace cellkeep::mcp {

void Front::pass_on(PassedClients& passed) const {
    passed.tasks = tasks_.pass_on();
    passed.seal_key = seal_.key();
}

PassedClient Front::pass_on(const Client& client) {
    PassedClient passed;
    passed.capabilities = client.capabilities();
    passed.log_level = client.log_level;
    passed.subscription = Subscriptions::pass_on(client);
    return passed;
}

Status Front::go_on(const PassedClients& passed) {
    tasks_.go_on(passed.tasks);
    return passed.seal_key.empty() ? Status(ok()) : seal_.use_key(passed.seal_key);
}

std::shared_ptr<Client> Front::go_on(const PassedClient& passed) {
    auto client = std::make_shared<Client>(io_, passed.capabilities);
    client->log_level = passed.log_level;
    if (passed.subscription) {
        subscriptions_.go_on(client, *passed.subscription);
    }
    return client;
}

}  // namespace cellkeep::mcp
