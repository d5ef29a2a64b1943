// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/process/faults.hpp"

#include "kernels/cpp/compile/shadowed_names.hpp"
#include "kernels/cpp/include/cellkeep/publish_abi.h"

#include <cxxabi.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <typeinfo>

namespace cellkeep::cpp {

namespace {

constexpr std::array kCrashes{SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
/// A fault this near to the stack pointer is the stack's end.
constexpr std::uintptr_t kStackReach = 256 * 1024;
constexpr std::size_t kHandlerStackBytes = 64 * 1024;
constexpr int kInterruptedExitCode = 130;

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): handlers are given nothing.
// What signal handlers read.
volatile sig_atomic_t g_runs = 0;
int g_fault_channel_fd = -1;
// What terminate handlers read; written by the main thread before cells run.
Channel* g_fault_channel = nullptr;
std::uint64_t g_id = 0;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

/// What was printed without a newline. Not safe in a signal handler by the letter; the process ends
/// anyway, and a lock that is held elsewhere is left alone.
void write_out_stdout() {
    if (::ftrylockfile(stdout) == 0) {
        (void)::fflush_unlocked(stdout);
        ::funlockfile(stdout);
    }
}

extern "C" void on_interrupt(int /*signal*/) {
    if (g_runs != 0) {
        write_out_stdout();
        ::_exit(kInterruptedExitCode);
    }
}

std::uintptr_t stack_pointer(const void* context) {
#if defined(__x86_64__)
    const auto* machine = static_cast<const ucontext_t*>(context);
    return static_cast<std::uintptr_t>(machine->uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
    return static_cast<const ucontext_t*>(context)->uc_mcontext.sp;
#else
    (void)context;
    return 0;
#endif
}

/// By hand: in a signal handler there is no memory to be had.
void tell_line() {
    std::array<char, 16> said{};
    said.back() = '\n';
    std::size_t begin = said.size() - 1;
    for (unsigned rest = cellkeep_cpp_line; rest > 0; rest /= 10) {
        said[--begin] = static_cast<char>('0' + rest % 10);
    }
    said[--begin] = static_cast<char>(Word::kLine);
    (void)!::write(g_fault_channel_fd, &said[begin], said.size() - begin);
}

/// For the supervisor, which hears of the signal itself.
void tell_crash(int signal, const siginfo_t& info, const void* context) {
    if (signal == SIGSEGV && info.si_code > 0) {
        const auto fault = reinterpret_cast<std::uintptr_t>(info.si_addr);
        const std::uintptr_t stack = stack_pointer(context);
        if (fault + kStackReach > stack && fault < stack + kStackReach) {
            constexpr std::array<char, 2> kLine{static_cast<char>(Word::kOverflow), '\n'};
            (void)!::write(g_fault_channel_fd, kLine.data(), kLine.size());
        }
    }
    tell_line();
}

extern "C" void on_crash(int signal, siginfo_t* info, void* context) {
    if (g_fault_channel->is_ours()) {
        tell_crash(signal, *info, context);
    }
    write_out_stdout();
    (void)::signal(signal, SIG_DFL);
    (void)::raise(signal);
}

[[noreturn]] void on_terminate() {
    std::cout.flush();
    if (g_runs != 0 && g_fault_channel->is_ours() && std::current_exception() != nullptr) {
        // What a cell throws may say anything, in any encoding.
        g_fault_channel->say(
            Word::kFailed,
            exception_event(g_id).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
        write_out_stdout();
        ::_exit(1);
    }
    if (std::current_exception() != nullptr) {
        const nlohmann::json event = exception_event(0);
        std::cerr << "a thread ended the process with an exception that nothing caught: "
                  << event["name"].get<std::string>() << ": " << event["message"].get<std::string>()
                  << std::endl;
    }
    std::abort();
}

struct Caught {
    std::string name;
    std::string message;
    std::string kind = "runtime";
    int number = 0;  // errno, where the exception has one
};

Caught caught_now() {
    Caught caught;
    const std::type_info* type = abi::__cxa_current_exception_type();
    if (type != nullptr) {
        int status = 0;
        const std::unique_ptr<char, void (*)(void*)> name(
            abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), std::free);
        caught.name = without_tags(name ? name.get() : type->name());
    }
    try {
        throw;
    } catch (const std::bad_alloc& error) {
        caught.message = std::string("out of memory (") + error.what() + ")";
        caught.kind = "memory";
    } catch (const std::system_error& error) {
        caught.message = error.what();
        if (error.code().category() == std::generic_category() ||
            error.code().category() == std::system_category()) {
            caught.number = error.code().value();
        }
    } catch (const std::exception& error) {
        caught.message = error.what();
    } catch (const std::string& text) {
        caught.message = text;
    } catch (const char* text) {
        caught.message = text;
    } catch (const int& number) {
        caught.message = std::to_string(number);
    } catch (...) {
        // Any other type: its name is all that can be known of it.
        caught.message = "an exception of this type";
    }
    return caught;
}

void handle(int signal, void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    (void)::sigaction(signal, &action, nullptr);
}

}  // namespace

void install_fault_handlers(Channel& channel) {
    g_fault_channel = &channel;
    g_fault_channel_fd = channel.fd();
    // Static: a handler needs a stack when there is none left.
    static std::array<char, kHandlerStackBytes> handler_stack;
    stack_t stack{};
    stack.ss_sp = handler_stack.data();
    stack.ss_size = handler_stack.size();
    (void)::sigaltstack(&stack, nullptr);
    for (const int signal : kCrashes) {
        handle(signal, &on_crash);
    }
    struct sigaction interrupt {};
    interrupt.sa_handler = &on_interrupt;
    interrupt.sa_flags = SA_ONSTACK | SA_RESTART;
    (void)::sigaction(SIGINT, &interrupt, nullptr);
    std::set_terminate(&on_terminate);
}

CellRuns::CellRuns(std::uint64_t id) {
    g_id = id;
    cellkeep_cpp_line = 0;
    g_runs = 1;
}

CellRuns::~CellRuns() {
    g_runs = 0;
}

nlohmann::json exception_event(std::uint64_t id) {
    const Caught caught = caught_now();
    nlohmann::json event = {
        {"event", "done"},
        {"id", id},
        {"status", "error"},
        {"name", caught.name},
        {"message", caught.message},
        {"kind", caught.kind},
        {"traceback", {caught.name + ": " + caught.message}}};
    if (cellkeep_cpp_line > 0) {
        event["line"] = cellkeep_cpp_line;
    }
    if (caught.number != 0) {
        event["errno"] = caught.number;
    }
    return event;
}

}  // namespace cellkeep::cpp
