// SPDX-License-Identifier: Apache-2.0
//
// What becomes of mappings that are prepared for forks; by maps and smaps of this process.
#include "kernels/common/zygote_memory.hpp"

#include <catch2/catch.hpp>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <malloc.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <future>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using cellkeep::kernels::collapse_into_huge_pages;
using cellkeep::kernels::join_code_with_constants;
using cellkeep::kernels::join_data_with_zeros;
using cellkeep::kernels::join_read_only_data;
using cellkeep::kernels::kHeapMappingBytesMax;
using cellkeep::kernels::kPagesForHugeMin;
using cellkeep::kernels::kZygoteMappingsMax;

namespace {

constexpr std::size_t kHuge = 2UL << 20U;
constexpr int kCollapse = 25;  // MADV_COLLAPSE

/// An aligned piece of anonymous memory, of which the first pages are written to; with more
/// bytes beside it, which stay unused. It is in small pages, whatever this host's setting is, and
/// nothing asks khugepaged to join them.
class Piece {
 public:
    explicit Piece(
        std::size_t pages, int protection = PROT_READ | PROT_WRITE, std::size_t beside = 0)
        : bytes_(2 * kHuge + beside),
          whole_(::mmap(
              nullptr,
              bytes_,
              PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
              -1,
              0)) {
        REQUIRE(whole_ != MAP_FAILED);
        const auto begin = reinterpret_cast<std::uintptr_t>(whole_);
        data_ = reinterpret_cast<char*>((begin + kHuge - 1) & ~(kHuge - 1));
        REQUIRE(::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
        const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        for (std::size_t i = 0; i < pages; ++i) {
            data_[i * page] = static_cast<char>('a' + i % 26);
        }
        REQUIRE(::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0) == 0);
        REQUIRE(::mprotect(data_, kHuge, protection) == 0);
    }
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;
    ~Piece() { (void)::munmap(whole_, bytes_); }  // Ignored: it is ours, so it cannot fail.

    char* data() const { return data_; }

    /// Bytes of it in huge pages (proc_pid_smaps(5)).
    std::size_t huge_bytes() const {
        std::ifstream smaps("/proc/self/smaps");
        const auto place = reinterpret_cast<std::uintptr_t>(data_);
        bool is_ours = false;
        for (std::string line; std::getline(smaps, line);) {
            std::uintptr_t begin = 0;
            std::uintptr_t end = 0;
            if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
                is_ours = begin <= place && place < end;
            }
            std::size_t kilobytes = 0;
            if (is_ours && std::sscanf(line.c_str(), "AnonHugePages: %zu", &kilobytes) == 1) {
                return kilobytes * 1024;
            }
        }
        return 0;
    }

 private:
    std::size_t bytes_;
    void* whole_;
    char* data_ = nullptr;
};

/// This host has such a page to give, now.
bool host_collapses() {
    const Piece piece(512);
    return ::madvise(piece.data(), kHuge, kCollapse) == 0;
}

std::string rights_at(std::uintptr_t place) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
        char rights[5]{};
        if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, rights) == 3 && begin <= place &&
            place < end) {
            return rights;
        }
    }
    return {};
}

/// Where the dynamic linker has made data of each library read-only, the program's included.
std::vector<std::uintptr_t> read_only_data() {
    std::vector<std::uintptr_t> found;
    (void)::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* into) {
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
                    static_cast<std::vector<std::uintptr_t>*>(into)->push_back(
                        info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
                }
            }
            return 0;
        },
        &found);  // Ignored: what the function above returned.
    return found;
}

int refusal = 0;
std::size_t asked = 0;

int refuse(void* /*begin*/, std::size_t /*bytes*/, int /*advice*/) {
    ++asked;
    errno = refusal;
    return -1;
}

std::vector<void*> wanted;

int note(void* begin, std::size_t bytes, int advice) {
    wanted.push_back(begin);
    return ::madvise(begin, bytes, advice);
}

/// Whether a huge page would be made of it.
bool is_wanted(const Piece& piece) {
    wanted.clear();
    (void)collapse_into_huge_pages(&note);
    return std::find(wanted.begin(), wanted.end(), piece.data()) != wanted.end();
}

/// As many mappings as that of memory that can be written to, with others between them.
class Mappings {
 public:
    explicit Mappings(std::size_t count)
        : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
          bytes_(2 * count * page_),
          whole_(static_cast<char*>(
              ::mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        REQUIRE(whole_ != MAP_FAILED);
        for (std::size_t i = 0; i < count; ++i) {
            REQUIRE(::mprotect(whole_ + 2 * i * page_, page_, PROT_READ | PROT_WRITE) == 0);
        }
    }
    Mappings(const Mappings&) = delete;
    Mappings& operator=(const Mappings&) = delete;
    ~Mappings() { (void)::munmap(whole_, bytes_); }  // Ignored: it is ours, so it cannot fail.

    const char* data() const { return whole_; }

 private:
    std::size_t page_;
    std::size_t bytes_;
    char* whole_;
};

using Texts = std::vector<std::string>;

/// Of the mappings of that library, in their order.
Texts rights_of(const std::string& library) {
    Texts rights;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.ends_with("/" + library)) {
            rights.push_back(line.substr(line.find(' ') + 1, 4));
        }
    }
    return rights;
}

std::size_t count_mappings() {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);) {
        ++count;
    }
    return count;
}

}  // namespace

TEST_CASE("full memory is put into huge pages, and stays what it was", "[kernels][zygote]") {
    const Piece piece(512);
    const std::string before(piece.data(), kHuge);
    const std::size_t made = collapse_into_huge_pages();
    CHECK((made >= 1) == host_collapses());
    CHECK(piece.huge_bytes() == (host_collapses() ? kHuge : 0));
    CHECK(std::memcmp(piece.data(), before.data(), kHuge) == 0);
}

TEST_CASE("memory that is not there is not taken for a huge page", "[kernels][zygote]") {
    const Piece sparse(kPagesForHugeMin - 1);
    CHECK_FALSE(is_wanted(sparse));
    const Piece enough(kPagesForHugeMin);
    CHECK(is_wanted(enough));
    CHECK(enough.huge_bytes() == (host_collapses() ? kHuge : 0));
}

TEST_CASE("memory that is reserved rather than used is not looked through", "[kernels][zygote]") {
    const Piece reserved(512, PROT_READ | PROT_WRITE, kHeapMappingBytesMax);
    CHECK_FALSE(is_wanted(reserved));
}

TEST_CASE("a program of very many mappings is looked through in part", "[kernels][zygote]") {
    const Piece last(512);
    CHECK(is_wanted(last));
    const Mappings many(kZygoteMappingsMax);
    REQUIRE(many.data() < last.data());  // Linux maps from the top downwards
    CHECK_FALSE(is_wanted(last));
}

TEST_CASE("a host that has no huge page is asked once", "[kernels][zygote]") {
    const Piece one(512);
    const Piece other(512);
    for (const int reason : {ENOMEM, EBUSY}) {
        refusal = reason;
        asked = 0;
        CHECK(collapse_into_huge_pages(&refuse) == 0);
        CHECK(asked == 1);
    }
    refusal = EAGAIN;  // of this piece alone
    asked = 0;
    CHECK(collapse_into_huge_pages(&refuse) == 0);
    CHECK(asked >= 2);
}

TEST_CASE("memory that cannot be written to is left alone", "[kernels][zygote]") {
    const Piece piece(512, PROT_READ);
    CHECK_FALSE(is_wanted(piece));
    CHECK(rights_at(reinterpret_cast<std::uintptr_t>(piece.data())) == "r--p");
}

TEST_CASE("read-only data of libraries is joined with what can be written", "[kernels][zygote]") {
    const std::size_t mappings = count_mappings();
    CHECK(join_read_only_data() > 0);
    CHECK(count_mappings() < mappings);
    for (const std::uintptr_t place : read_only_data()) {
        CHECK(rights_at(place) == "rw-p");
    }
}

TEST_CASE("other memory that is read-only stays so", "[kernels][zygote]") {
    std::FILE* const file = std::tmpfile();
    REQUIRE(file != nullptr);
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    REQUIRE(::ftruncate(::fileno(file), static_cast<off_t>(2 * page)) == 0);
    void* const whole = ::mmap(nullptr, 2 * page, PROT_READ, MAP_PRIVATE, ::fileno(file), 0);
    REQUIRE(whole != MAP_FAILED);
    char* const data = static_cast<char*>(whole);
    REQUIRE(::mprotect(data + page, page, PROT_READ | PROT_WRITE) == 0);
    const auto constant = reinterpret_cast<std::uintptr_t>("a constant");
    const std::string before = rights_at(constant);
    (void)join_read_only_data();
    CHECK(rights_at(constant) == before);
    (void)join_code_with_constants();
    CHECK(rights_at(reinterpret_cast<std::uintptr_t>(data)) == "r--p");
    CHECK(::munmap(whole, 2 * page) == 0);
    CHECK(std::fclose(file) == 0);
}

TEST_CASE("constants of a library are joined with its code", "[kernels][zygote]") {
    void* const library = ::dlopen("libnss_compat.so.2", RTLD_LAZY | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    const Texts before = rights_of("libnss_compat.so.2");
    CHECK(before.size() >= 4);
    CHECK(std::count(before.begin(), before.end(), "r-xp") == 1);
    CHECK(join_code_with_constants() > 0);
    (void)join_read_only_data();
    CHECK(rights_of("libnss_compat.so.2") == Texts{"r-xp", "rw-p"});
    static int data = 1;  // what can be written to stays so, and cannot be executed
    CHECK(rights_at(reinterpret_cast<std::uintptr_t>(&data)) == "rw-p");
    CHECK(::dlclose(library) == 0);
}

namespace {

/// Data of this program that is no zeros, followed by zeros of its own.
volatile int kept_number = 42;
const char* volatile kept_text = "kept";
char zeros_behind[1U << 20U];

/// The file that a mapping is of, or the empty text: none.
std::string file_at(std::uintptr_t place) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2 && begin <= place &&
            place < end) {
            const auto name = line.find('/');
            return name == std::string::npos ? "" : line.substr(name);
        }
    }
    return "none";
}

/// Until Linux does not count a thread any more that has been joined.
void await_one_thread() {
    struct stat threads {};
    do {
        REQUIRE(::stat("/proc/self/task", &threads) == 0);
    } while (threads.st_nlink > 3 && ::sched_yield() == 0);
}

std::uintptr_t place_of(const volatile void* object) {
    return reinterpret_cast<std::uintptr_t>(object);
}

}  // namespace

TEST_CASE(
    "data of libraries is joined with their zeros, and stays what it was", "[kernels][zygote]") {
    zeros_behind[0] = 1;
    await_one_thread();
    REQUIRE_FALSE(file_at(place_of(&kept_number)).empty());  // no other test here joins it
    (void)join_read_only_data();
    const std::size_t mappings = count_mappings();
    const std::size_t joined = join_data_with_zeros();
    CHECK(joined > 1);
    if (::mallinfo2().arena != 0) {                    // else a sanitizer has mapped more meanwhile
        CHECK(count_mappings() + joined <= mappings);  // each was a mapping of its own
    }
    CHECK(file_at(place_of(&kept_number)).empty());
    CHECK(rights_at(place_of(&kept_number)) == "rw-p");
    CHECK(kept_number == 42);
    CHECK(std::string(kept_text) == "kept");
    kept_number = 43;
    CHECK(kept_number == 43);
    CHECK(zeros_behind[0] == 1);
    CHECK(join_data_with_zeros() == joined);  // a second time it changes nothing
    CHECK(kept_number == 43);
}

TEST_CASE("data of libraries stays where it is while another thread runs", "[kernels][zygote]") {
    const std::string before = file_at(place_of(&kept_number));
    std::promise<void> end;
    std::thread other([ended = end.get_future()]() mutable { ended.get(); });
    CHECK(join_data_with_zeros() == 0);
    end.set_value();
    other.join();
    CHECK(file_at(place_of(&kept_number)) == before);
}

TEST_CASE("data of libraries that cannot be written to stays where it is", "[kernels][zygote]") {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    (void)join_read_only_data();
    const std::uintptr_t place = read_only_data().front() & ~(page - 1);
    const std::string file = file_at(place);
    REQUIRE(::mprotect(reinterpret_cast<void*>(place), page, PROT_READ) == 0);
    await_one_thread();
    CHECK(join_data_with_zeros() > 0);  // in others
    CHECK(file_at(place) == file);
    CHECK(rights_at(place) == "r--p");
    CHECK(::mprotect(reinterpret_cast<void*>(place), page, PROT_READ | PROT_WRITE) == 0);
}
