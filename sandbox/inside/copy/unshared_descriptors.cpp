// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/copy/unshared_descriptors.hpp"

#include "sandbox/inside/copy/proc_reader.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string_view>

namespace cellkeep::sandbox {

namespace {

/// In the order in which they are replaced: an epoll waits for the others.
enum class SharedKind { kNone, kEvent, kPipe, kEpoll };

struct SharedDescriptor {
    int fd = -1;
    SharedKind kind = SharedKind::kNone;
    int flags = 0;
    int close_on_exec = 0;
    std::uint64_t identity = 0;  // of an eventfd or a pipe
    std::size_t original = 0;    // the index of the first duplicate
};

struct SharedTable {
    std::array<SharedDescriptor, kUnsharedDescriptorsMax> descriptors;
    std::size_t count = 0;
    std::array<int, kUnsharedDescriptorsMax> numbers;
    std::array<char, 1UL << 20U> text;  // of an epoll: a line for each member

    std::span<SharedDescriptor> all() { return std::span(descriptors).first(count); }
};

std::string_view read_info(SharedTable& table, int fd) {
    return read_start(ProcPath("/proc/self/fdinfo/", fd).c_str(), table.text);
}

SharedKind shared_kind_of(int fd) {
    std::array<char, 64> buffer{};
    const ssize_t size =
        ::readlink(ProcPath("/proc/self/fd/", fd).c_str(), buffer.data(), buffer.size());
    if (size <= 0) {
        return SharedKind::kNone;
    }
    const std::string_view target(buffer.data(), static_cast<std::size_t>(size));
    if (target == "anon_inode:[eventfd]") {
        return SharedKind::kEvent;
    }
    if (target == "anon_inode:[eventpoll]") {
        return SharedKind::kEpoll;
    }
    return target.starts_with("pipe:[") ? SharedKind::kPipe : SharedKind::kNone;
}

std::uint64_t identity_of(SharedTable& table, const SharedDescriptor& one) {
    if (one.kind == SharedKind::kEvent) {
        return find_number(read_info(table, one.fd), "eventfd-id:").value_or(0);
    }
    struct stat info {};
    return one.kind == SharedKind::kPipe && ::fstat(one.fd, &info) == 0 ? info.st_ino : 0;
}

int list_descriptors(SharedTable& table) {
    const int directory = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) {
        return errno;
    }
    const ssize_t count = list_numbers(directory, table.numbers);
    (void)::close(directory);  // Ignored: it was only read from.
    if (count < 0) {
        return static_cast<int>(-count);
    }
    if (static_cast<std::size_t>(count) > table.numbers.size()) {
        return E2BIG;
    }
    table.count = 0;
    for (const int fd : std::span(table.numbers).first(static_cast<std::size_t>(count))) {
        SharedDescriptor one;
        one.fd = fd;
        one.kind = shared_kind_of(fd);
        if (one.kind != SharedKind::kNone) {
            one.flags = ::fcntl(fd, F_GETFL);
            one.close_on_exec = (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0;
            one.identity = identity_of(table, one);
            table.descriptors[table.count++] = one;
        }
    }
    return 0;
}

/// Duplicates share O_NONBLOCK, which means nothing to an epoll: it is turned over in one and
/// looked for in the other.
bool are_one_epoll(const SharedDescriptor& first, const SharedDescriptor& second) {
    (void)::fcntl(
        first.fd, F_SETFL, first.flags ^ O_NONBLOCK);  // Ignored: then they look like two.
    const int other = ::fcntl(second.fd, F_GETFL);
    (void)::fcntl(first.fd, F_SETFL, first.flags);
    return ((other ^ second.flags) & O_NONBLOCK) != 0;
}

bool are_duplicates(const SharedDescriptor& first, const SharedDescriptor& second) {
    if (first.kind != second.kind) {
        return false;
    }
    if (first.kind == SharedKind::kEpoll) {
        return are_one_epoll(first, second);
    }
    return first.identity != 0 && first.identity == second.identity &&
           ((first.flags ^ second.flags) & O_ACCMODE) == 0;
}

/// To be asked before one of them is replaced.
void find_originals(std::span<SharedDescriptor> all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].original = i;
        for (std::size_t j = 0; j < i && all[i].original == i; ++j) {
            if (all[j].original == j && are_duplicates(all[j], all[i])) {
                all[i].original = j;
            }
        }
    }
}

/// Takes the place of the old one; fd is closed.
int put_in_place(int fd, const SharedDescriptor& old) {
    const int error = ::dup3(fd, old.fd, old.close_on_exec) < 0 ? errno : 0;
    (void)::close(fd);  // Ignored: it is in its place, or was of no use.
    return error;
}

int renew_event(SharedTable& table, const SharedDescriptor& one) {
    const std::string_view info = read_info(table, one.fd);
    const auto count = find_number(info, "eventfd-count:", 16).value_or(0);
    const bool counts_down = find_number(info, "eventfd-semaphore:").value_or(0) != 0;
    const int fd = ::eventfd(
        static_cast<unsigned>(count),
        EFD_CLOEXEC | ((one.flags & O_NONBLOCK) != 0 ? EFD_NONBLOCK : 0) |
            (counts_down ? EFD_SEMAPHORE : 0));
    return fd < 0 ? errno : put_in_place(fd, one);
}

/// What is unread belongs to both: it is read from the old pipe and written to the new and to the
/// old one, where there is room for it again.
void copy_unread(SharedTable& table, int from, int from_end, int to) {
    int unread = 0;
    if (::ioctl(from, FIONREAD, &unread) < 0 || unread <= 0) {
        return;
    }
    const std::size_t wanted = std::min(static_cast<std::size_t>(unread), table.text.size());
    const ssize_t got = ::read(from, table.text.data(), wanted);
    if (got > 0) {
        // Ignored: a pipe that holds less than the old one holds the beginning.
        (void)!::write(to, table.text.data(), static_cast<std::size_t>(got));
        (void)!::write(from_end, table.text.data(), static_cast<std::size_t>(got));
    }
}

/// reader: the first of its duplicates. A pipe whose other end is another process's stays.
int renew_pipe(SharedTable& table, const SharedDescriptor& reader) {
    const std::span<SharedDescriptor> all = table.all();
    const auto is_writer = [&](const SharedDescriptor& one) {
        return one.kind == SharedKind::kPipe && one.identity == reader.identity &&
               (one.flags & O_ACCMODE) == O_WRONLY && &all[one.original] == &one;
    };
    const auto writer = std::find_if(all.begin(), all.end(), is_writer);
    std::array<int, 2> ends{};
    if (writer == all.end()) {
        return 0;
    }
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) < 0) {
        return errno;
    }
    // Ignored: without room for it, the rest of what is unread is lost.
    (void)::fcntl(ends[1], F_SETPIPE_SZ, ::fcntl(reader.fd, F_GETPIPE_SZ));
    copy_unread(table, reader.fd, writer->fd, ends[1]);
    (void)::fcntl(ends[0], F_SETFL, reader.flags);  // Ignored, here and below: both are pipes.
    (void)::fcntl(ends[1], F_SETFL, writer->flags);
    const int error = put_in_place(ends[0], reader);
    const int other = put_in_place(ends[1], *writer);
    return error != 0 ? error : other;
}

int renew_epoll(SharedTable& table, const SharedDescriptor& one) {
    const int fd = ::epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    // proc_pid_fdinfo(5): "tfd: 5 events: 1d data: ffffffffffffffff …", a line for each.
    std::string_view rest = read_info(table, one.fd);
    constexpr std::string_view kMember = "tfd:";
    for (auto at = rest.find(kMember); at != std::string_view::npos; at = rest.find(kMember)) {
        rest.remove_prefix(at);
        const std::string_view line = rest.substr(0, rest.find('\n'));
        const auto member = find_number(line, kMember);
        const auto events = find_number(line, "events:", 16);
        const auto data = find_number(line, "data:", 16);
        if (member && events && data) {
            epoll_event event{};
            event.events = static_cast<std::uint32_t>(*events);
            event.data.u64 = *data;
            // Ignored: a descriptor that was closed since is a member of nothing.
            (void)::epoll_ctl(fd, EPOLL_CTL_ADD, static_cast<int>(*member), &event);
        }
        rest.remove_prefix(line.size());
    }
    return put_in_place(fd, one);
}

int renew(SharedTable& table, const SharedDescriptor& one) {
    switch (one.kind) {
        case SharedKind::kEvent:
            return renew_event(table, one);
        case SharedKind::kPipe:
            return (one.flags & O_ACCMODE) == O_RDONLY ? renew_pipe(table, one) : 0;
        case SharedKind::kEpoll:
            return renew_epoll(table, one);
        case SharedKind::kNone:
            break;
    }
    return 0;
}

int renew_duplicate(const SharedDescriptor& original, const SharedDescriptor& one) {
    return ::dup3(original.fd, one.fd, one.close_on_exec) < 0 ? errno : 0;
}

/// Too large for a thread's stack. One thread, as all here.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
SharedTable shared_table;

int get_option(int fd, int level, int name) {
    int value = 0;
    socklen_t size = sizeof(value);
    return ::getsockopt(fd, level, name, &value, &size) < 0 ? -1 : value;
}

bool is_tcp_listener(int fd) {
    const int family = get_option(fd, SOL_SOCKET, SO_DOMAIN);
    return (family == AF_INET || family == AF_INET6) &&
           get_option(fd, SOL_SOCKET, SO_ACCEPTCONN) == 1 &&
           get_option(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP;
}

void rebind(int fd) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) < 0) {
        return;
    }
    const int own = ::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (own < 0) {
        return;
    }
    SharedDescriptor old;
    old.fd = fd;
    old.close_on_exec = (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0;
    const int yes = 1;
    const int only_six = get_option(fd, IPPROTO_IPV6, IPV6_V6ONLY);
    // Ignored, here and below: then it cannot be bound, or is blocking as a new one.
    (void)::setsockopt(own, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (address.ss_family == AF_INET6 && only_six >= 0) {
        (void)::setsockopt(own, IPPROTO_IPV6, IPV6_V6ONLY, &only_six, sizeof(only_six));
    }
    (void)::fcntl(own, F_SETFL, ::fcntl(fd, F_GETFL));
    if (::bind(own, reinterpret_cast<const sockaddr*>(&address), size) < 0 ||
        ::listen(own, SOMAXCONN) < 0) {
        (void)::close(own);  // Ignored: it was never used.
        return;
    }
    (void)put_in_place(own, old);
}

}  // namespace

void rebind_listeners() noexcept {
    const int directory = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) {
        return;
    }
    SharedTable& table = shared_table;
    const ssize_t count = list_numbers(directory, table.numbers);
    (void)::close(directory);  // Ignored: it was only read from.
    const std::size_t known =
        std::min(static_cast<std::size_t>(std::max<ssize_t>(count, 0)), table.numbers.size());
    for (const int fd : std::span(table.numbers).first(known)) {
        if (is_tcp_listener(fd)) {
            rebind(fd);
        }
    }
}

int unshare_descriptors() noexcept {
    SharedTable& table = shared_table;
    if (const int error = list_descriptors(table); error != 0) {
        return error;
    }
    const std::span<SharedDescriptor> all = table.all();
    find_originals(all);
    for (const SharedKind kind : {SharedKind::kEvent, SharedKind::kPipe, SharedKind::kEpoll}) {
        // First the originals: of a pipe the writing end has its place with the reading one.
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (all[i].kind == kind && all[i].original == i) {
                if (const int error = renew(table, all[i]); error != 0) {
                    return error;
                }
            }
        }
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (all[i].kind == kind && all[i].original != i) {
                if (const int error = renew_duplicate(all[all[i].original], all[i]); error != 0) {
                    return error;
                }
            }
        }
    }
    return 0;
}

}  // namespace cellkeep::sandbox
