// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/copy/parked_threads.hpp"

#include "sandbox/inside/copy/interrupted_wait.hpp"
#include "sandbox/inside/copy/kernel_call.hpp"
#include "sandbox/inside/copy/proc_reader.hpp"
#include "sandbox/inside/copy/thread_record.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <span>

#if defined(__x86_64__)

namespace cellkeep::sandbox {

namespace {

/// SIGSETXID, which glibc keeps for setuid(2). pthread_sigmask(3) cannot block it, so it also
/// reaches threads that have blocked "all" signals, as allocators' own threads do.
constexpr int kParkSignal = 33;
constexpr std::size_t kSignalSetBytes = 8;  // of the system call

struct Parking {
    std::array<ThreadRecord, kParkedThreadsMax> records;
    std::size_t count = 0;
    ThreadRecord caller;
    std::atomic<std::uint32_t> turn{0};  // rises when the stopped threads may go on
    std::atomic<std::uint32_t> arrived{0};
    std::atomic<std::uint32_t> wanted{0};
};

/// The handler of a signal has nothing else to find it by.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
Parking parking;

void wait_for_change(std::atomic<std::uint32_t>& word, std::uint32_t seen, const timespec* limit) {
    (void)call_kernel(SYS_futex, address_of(&word), FUTEX_WAIT_PRIVATE, seen, address_of(limit));
}

void tell_change(std::atomic<std::uint32_t>& word) {
    (void)call_kernel(SYS_futex, address_of(&word), FUTEX_WAKE_PRIVATE, INT32_MAX);
}

/// As rt_sigaction(2) has it, which lets the signal be handled that sigaction(3) does not.
struct KernelAction {
    void (*handler)(int, siginfo_t*, void*) = nullptr;
    unsigned long flags = 0;
    void (*restorer)() = nullptr;
    std::uint64_t mask = 0;
};

/// Of the signal, before it was this one's: glibc's.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
KernelAction earlier_action;

ThreadRecord* find_asked(const siginfo_t& info) {
    auto* const record = static_cast<ThreadRecord*>(info.si_value.sival_ptr);
    const ThreadRecord* const first = parking.records.data();
    const bool is_ours =
        info.si_code == SI_QUEUE && record >= first && record < first + parking.records.size();
    return is_ours ? record : nullptr;
}

/// A thread stands still here. In a fork it goes on behind save_registers().
void on_park(int signal, siginfo_t* info, void* context) {
    ThreadRecord* const record = find_asked(*info);
    if (record == nullptr) {
        // 0 and 1 are SIG_DFL and SIG_IGN.
        if (reinterpret_cast<std::uintptr_t>(earlier_action.handler) > 1) {
            earlier_action.handler(signal, info, context);
        }
        return;
    }
    if (record->thread != call_kernel(SYS_gettid) || record->state != ThreadState::kAsked) {
        return;  // Too late: it is not waited for any more.
    }
    const std::uint32_t turn = parking.turn;
    note_thread(*record);
    if (cellkeep_save_registers(record->registers.data()) == 0) {
        ThreadState asked = ThreadState::kAsked;
        if (!record->state.compare_exchange_strong(asked, ThreadState::kParked)) {
            return;
        }
        parking.arrived += 1;
        tell_change(parking.arrived);
        while (parking.turn == turn) {
            wait_for_change(parking.turn, turn, nullptr);
        }
    }
    repeat_wait(*static_cast<ucontext_t*>(context));
    record->state = ThreadState::kLeft;
}

long change_action(int signal, const KernelAction* wanted, KernelAction* before) {
    return call_kernel(
        SYS_rt_sigaction, signal, address_of(wanted), address_of(before), kSignalSetBytes);
}

/// The C library's own way back from a handler, which unwinders know. It is only to be had from an
/// action that the library has set.
void (*find_restorer())() {
    struct sigaction ignore {};
    struct sigaction before {};
    ignore.sa_handler = SIG_IGN;
    KernelAction set;
    (void)::sigaction(SIGURG, &ignore, &before);  // Ignored, here and below: the signal exists.
    (void)change_action(SIGURG, nullptr, &set);
    (void)::sigaction(SIGURG, &before, nullptr);
    return set.restorer;
}

int set_handler() {
    constexpr unsigned long kHasRestorer = 0x04000000;  // SA_RESTORER
    KernelAction now;
    if (const long result = change_action(kParkSignal, nullptr, &now); result < 0) {
        return static_cast<int>(-result);
    }
    if (now.handler == on_park) {
        return 0;
    }
    earlier_action = now;
    KernelAction wanted;
    wanted.handler = on_park;
    wanted.flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | kHasRestorer;
    wanted.restorer = find_restorer();
    wanted.mask = ~std::uint64_t{0};
    return static_cast<int>(-change_action(kParkSignal, &wanted, nullptr));
}

long send_park_signal(ThreadRecord& record) {
    siginfo_t info{};
    info.si_signo = kParkSignal;
    info.si_code = SI_QUEUE;
    info.si_pid = ::getpid();
    info.si_value.sival_ptr = &record;
    return call_kernel(
        SYS_rt_tgsigqueueinfo, info.si_pid, record.thread, kParkSignal, address_of(&info));
}

ThreadRecord* find_record(pid_t thread) {
    for (std::size_t i = 0; i < parking.count; ++i) {
        ThreadRecord& record = parking.records[i];
        // A number that was free may be another thread's now.
        if (record.thread == thread && record.state != ThreadState::kFree) {
            return &record;
        }
    }
    return nullptr;
}

void forget_asked(ThreadRecord& record) {
    ThreadState asked = ThreadState::kAsked;
    if (record.state.compare_exchange_strong(asked, ThreadState::kFree)) {
        parking.wanted -= 1;
    }
}

/// A thread that has no record yet gets one, and the signal.
int ask_thread(pid_t thread) {
    if (parking.count == parking.records.size()) {
        return E2BIG;
    }
    ThreadRecord& record = parking.records[parking.count];
    parking.count += 1;
    record.thread = thread;
    record.state = ThreadState::kAsked;
    parking.wanted += 1;
    const long result = send_park_signal(record);
    if (result == -ESRCH) {
        forget_asked(record);
        return 0;
    }
    return static_cast<int>(-result);
}

/// Asks the threads that have not been asked, and forgets those that have ended. found: how many
/// were asked.
int ask_threads(int directory, std::size_t& found) {
    static std::array<int, kParkedThreadsMax + 1> threads;  // the caller, too
    const ssize_t count = list_numbers(directory, threads);
    if (count < 0) {
        return static_cast<int>(-count);
    }
    if (static_cast<std::size_t>(count) > threads.size()) {
        return E2BIG;
    }
    const std::span<const int> living = std::span(threads).first(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < parking.count; ++i) {
        if (std::find(living.begin(), living.end(), parking.records[i].thread) == living.end()) {
            forget_asked(parking.records[i]);
        }
    }
    found = 0;
    for (const int thread : living) {
        if (thread == parking.caller.thread || find_record(thread) != nullptr) {
            continue;
        }
        if (const int error = ask_thread(thread); error != 0) {
            return error;
        }
        found += 1;
    }
    return 0;
}

using Clock = std::chrono::steady_clock;

/// A thread may begin others until it stands still: the list is read until it shows nobody new.
int park_all(int directory, Clock::time_point end) {
    constexpr timespec kLook{0, 2'000'000};  // somebody may have ended: the list is read again
    while (true) {
        std::size_t found = 0;
        if (const int error = ask_threads(directory, found); error != 0) {
            return error;
        }
        std::uint32_t seen = parking.arrived;
        if (found == 0 && seen == parking.wanted) {
            return 0;
        }
        while (seen < parking.wanted) {
            if (Clock::now() >= end) {
                return ETIMEDOUT;
            }
            wait_for_change(parking.arrived, seen, &kLook);
            const std::uint32_t now = parking.arrived;
            if (now == seen) {
                break;
            }
            seen = now;
        }
    }
}

/// Threads that went on from the last time may still be on their way out of the handler.
bool await_leaving(Clock::time_point end) {
    for (std::size_t i = 0; i < parking.count; ++i) {
        while (parking.records[i].state == ThreadState::kParked) {
            if (Clock::now() >= end) {
                return false;
            }
            (void)call_kernel(SYS_sched_yield);
        }
    }
    return true;
}

/// The first thread that stands in the way.
void find_culprit(Parked& parked) {
    const ThreadRecord& caller = parking.caller;
    for (std::size_t i = 0; i < parking.count && parked.thread == 0; ++i) {
        const ThreadRecord& record = parking.records[i];
        const bool is_glibc =
            reinterpret_cast<std::uintptr_t>(record.tid_address) - record.thread_pointer ==
            reinterpret_cast<std::uintptr_t>(caller.tid_address) - caller.thread_pointer;
        if (parked.error != 0 && record.state == ThreadState::kAsked) {
            parked.thread = record.thread;
        } else if (parked.error == 0 && record.state == ThreadState::kParked && !is_glibc) {
            parked.thread = record.thread;
            parked.error = EPROTO;
        }
    }
}

}  // namespace

bool can_park_threads() noexcept {
    return true;
}

Parked park_threads(std::chrono::milliseconds patience) noexcept {
    const Clock::time_point end = Clock::now() + patience;
    Parked parked;
    const int directory = ::open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) {
        parked.error = errno;
        return parked;
    }
    parking.caller.thread = ::gettid();
    note_thread(parking.caller);
    parked.error = set_handler();
    if (parked.error == 0 && !await_leaving(end)) {
        parked.error = ETIMEDOUT;
    }
    if (parked.error == 0) {
        parking.count = 0;
        parking.wanted = 0;
        parking.arrived = 0;
        parked.error = park_all(directory, end);
        find_culprit(parked);
    }
    (void)::close(directory);  // Ignored: it was only read from.
    return parked;
}

void unpark_threads() noexcept {
    for (std::size_t i = 0; i < parking.count; ++i) {
        forget_asked(parking.records[i]);
    }
    parking.turn += 1;
    tell_change(parking.turn);
}

int revive_threads() noexcept {
    const ThreadRecord& caller = parking.caller;
    for (std::size_t i = 0; i < parking.count; ++i) {
        ThreadRecord& record = parking.records[i];
        if (record.state != ThreadState::kParked) {
            continue;
        }
        record.has_own_processors =
            record.processors_size > 0 && record.processors != caller.processors;
        if (const int error = begin_again(record); error != 0) {
            return error;
        }
    }
    return 0;
}

}  // namespace cellkeep::sandbox

#else

namespace cellkeep::sandbox {

bool can_park_threads() noexcept {
    return false;
}

Parked park_threads(std::chrono::milliseconds /*patience*/) noexcept {
    return {ENOSYS, 0};
}

void unpark_threads() noexcept {}

int revive_threads() noexcept {
    return ENOSYS;
}

}  // namespace cellkeep::sandbox

#endif
