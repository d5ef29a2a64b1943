// SPDX-License-Identifier: Apache-2.0
//
// The warm starts of a server's languages, and the sandboxes that are made with their zygotes, or
// without one. io_context thread only.
#pragma once

#include "kernel-manager/warm/warm_start.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/awaitable.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace cellkeep::session {

class WarmStarts : public std::enable_shared_from_this<WarmStarts> {
 public:
    using ZygotePtr = WarmStart::ZygotePtr;
    using ByLanguage = std::map<std::string, std::shared_ptr<WarmStart>>;
    struct Hooks {
        /// Off the loop; zygote may be null (SandboxMaker).
        std::function<boost::asio::awaitable<Result<sandbox::Sandbox>>(sandbox::Policy, ZygotePtr)>
            make_sandbox;
        std::function<void(const std::string&)> log;
    };

    static std::shared_ptr<WarmStarts> create(ByLanguage languages, Hooks hooks);
    WarmStarts(const WarmStarts&) = delete;
    WarmStarts& operator=(const WarmStarts&) = delete;
    ~WarmStarts() = default;

    /// Begins to make the zygotes. Once.
    void begin();
    /// Every language's first zygote is made or could not be made.
    bool are_ready() const;
    /// The same of one language. At once for a language without a warm start.
    boost::asio::awaitable<void> wait_until_ready(std::string language);
    /// By the language's zygote if it has one and that covers the policy; if that fails, without.
    boost::asio::awaitable<Result<sandbox::Sandbox>> make_sandbox(
        std::string language, sandbox::Policy policy);
    /// Whether a session whose sandbox the zygote made has started. Null: no zygote did.
    void note_start(const std::string& language, const ZygotePtr& zygote, bool started);
    /// Lets all zygotes go and keeps these from now on. The sandboxes that the former ones made
    /// live on. Makes the new ones if begin() was called.
    void replace(ByLanguage languages);
    /// Ends all zygotes and makes no others.
    void stop();

 private:
    WarmStarts(ByLanguage languages, Hooks hooks)
        : languages_(std::move(languages)), hooks_(std::move(hooks)) {}

    std::shared_ptr<WarmStart> find(const std::string& language) const;

    ByLanguage languages_;
    const Hooks hooks_;
    bool begun_ = false;
    bool stopped_ = false;
};

}  // namespace cellkeep::session
