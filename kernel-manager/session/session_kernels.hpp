// SPDX-License-Identifier: Apache-2.0
//
// The kernels of a session: the main one, which front ends see, and one for each further language
// that code has come in. Owns them; none ends before the session does. io_context thread only.
#pragma once

#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/session/session_info.hpp"
#include "kernel-manager/session/session_setup.hpp"
#include "kernel-manager/session/supervised_kernel.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/sandbox.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::session {

/// The language of an interpreter. Beside that of its name a language may have others, which have a
/// number behind it, from 2: "python:3". Text that is neither is given back as it is.
std::string language_of_interpreter(const std::string& name);

class SessionKernels {
 public:
    /// None is empty.
    struct Hooks {
        std::function<std::unique_ptr<SupervisedKernel>(KernelSpec, sandbox::WorkerGroup)> make;
        /// Thaws the sandbox.
        std::function<void()> wake;
        /// Kills everything inside, or all of one group; on_swept() or on_group_swept() follows.
        std::function<Status()> begin_sweep;
        std::function<Status(sandbox::WorkerGroup)> begin_group_sweep;
        /// Something that no kernel has started lives inside, and is not to be swept with one.
        std::function<bool()> spares_others;
    };

    /// The setup stays where it is: which languages there are. Makes the main kernel.
    SessionKernels(const SessionSetup& setup, Hooks hooks);
    SessionKernels(const SessionKernels&) = delete;
    SessionKernels& operator=(const SessionKernels&) = delete;
    ~SessionKernels() = default;

    SupervisedKernel& main() const { return *main_; }
    /// The main one first.
    std::vector<SupervisedKernel*> all() const;
    SupervisedKernel& of(sandbox::WorkerGroup group) const {
        return group == 0 ? *main_ : *further_[group - 1];
    }
    /// Null if no code of the language has come.
    SupervisedKernel* find(const std::string& language) const;
    /// The same; kConflict, or what SessionSetup::refuse() says.
    Result<SupervisedKernel*> find_used(const std::string& language) const;
    /// Whether code of the language may come. kLimitExceeded beyond kSessionLanguagesMax.
    Status check(const std::string& language) const;
    /// The language's kernel, which is made if there is none. check() has looked. Call
    /// launch_waiting() afterwards.
    SupervisedKernel& open(const std::string& language);
    /// The next further kernel that another program in the server's process had.
    /// SupervisedKernel::go_on() follows. kProtocol: the session has it already, offers none such,
    /// or has too many.
    Result<SupervisedKernel*> open_again(const std::string& language);
    std::vector<LanguageInfo> list() const;
    OfferedLanguages offered() const;

    /// Launches what open() made or postpones_launch() kept, unless everything is being swept.
    void launch_waiting();
    /// Each begins what waits for it, if it is free.
    void dispatch();
    /// Returns whether everything is being swept; the kernel is then launched when that is over.
    bool postpones_launch(SupervisedKernel& kernel);
    /// Kills what the kernel's process left running: everything inside, if no other kernel lives
    /// and nothing else is to be spared.
    Status begin_sweep(SupervisedKernel& kernel);
    void on_swept();
    void on_group_swept(sandbox::WorkerGroup group);

    // --- what clients ask; see Session
    Status interrupt();

    // --- how they are
    /// No other kernel runs anything.
    bool is_alone(const SupervisedKernel& kernel) const;
    /// A request is with one, or waits for one.
    bool are_busy() const;
    /// Each is dead for good.
    bool are_dead() const;
    /// Something works that a freeze would hold up, or there is nothing to freeze.
    bool are_at_work() const;
    /// Each can pass to another program, and none is to come. with_runs:
    /// SupervisedKernel::can_pass.
    bool can_pass(bool with_runs) const;
    /// How many run something.
    std::size_t running() const;
    /// Everything inside is being killed.
    bool are_swept() const { return sweeping_all_; }
    /// Requests that wait, in all of them.
    std::size_t waiting() const;

    /// The session has ended: nothing is launched any more.
    void close();
    /// After close(): every request is answered. The main kernel is the last.
    void end(const Death& reason);

 private:
    SupervisedKernel& add(const std::string& language);

    const SessionSetup& setup_;
    const Hooks hooks_;
    const std::unique_ptr<SupervisedKernel> main_;
    std::vector<std::unique_ptr<SupervisedKernel>> further_;  // by group, from 1
    std::vector<SupervisedKernel*> to_launch_;                // until nothing is in the way
    bool sweeping_all_ = false;                               // nothing can be started inside
    bool closed_ = false;
};

}  // namespace cellkeep::session
