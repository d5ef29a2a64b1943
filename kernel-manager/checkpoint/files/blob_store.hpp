// SPDX-License-Identifier: Apache-2.0
//
// The contents of files, each once, named by its SHA-256: what the checkpoints of one session keep
// of its workspace. All of them lie one after another in a file without a name, so no guest can
// reach it, and the system takes it back when the server ends, however it ends. What is written is
// never changed.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cellkeep::checkpoint {

/// Bytes that the checkpoints of one session keep of files, and those of all sessions of a server.
inline constexpr std::uint64_t kStoredBytesMax = 1ULL << 30U;
inline constexpr std::uint64_t kSpaceBytesMax = 16ULL << 30U;

/// Where the bytes of all sessions lie, and how many there may be. Any thread.
class BlobSpace {
 public:
    /// directory: on a disk, rather; it need not be the server's alone.
    explicit BlobSpace(std::string directory, std::uint64_t bytes_max = kSpaceBytesMax)
        : directory_(std::move(directory)), bytes_max_(bytes_max) {}
    BlobSpace(const BlobSpace&) = delete;
    BlobSpace& operator=(const BlobSpace&) = delete;
    ~BlobSpace() = default;

    /// A new file without a name.
    Result<UniqueFd> make_file() const;
    /// False: there is no room for so many more.
    bool take(std::uint64_t bytes);
    /// What is there already, from the program before in this process: whatever the bound is.
    void take_over(std::uint64_t bytes) { used_ += bytes; }
    void give_back(std::uint64_t bytes) { used_ -= bytes; }

 private:
    std::string directory_;
    std::uint64_t bytes_max_;
    std::atomic<std::uint64_t> used_{0};
};

/// A store on its way from one program in the server's process to another: its file, and where in
/// it what is.
struct PassedBlobs {
    struct Blob {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
    };
    UniqueFd file;                      // none: there was never anything
    std::map<std::string, Blob> blobs;  // by digest
    std::uint64_t bytes = 0;            // BlobStore::bytes()
};

/// One session's. One thread at a time, except for bytes().
class BlobStore {
 public:
    explicit BlobStore(std::shared_ptr<BlobSpace> space, std::uint64_t bytes_max = kStoredBytesMax)
        : space_(std::move(space)), bytes_max_(bytes_max) {}
    BlobStore(const BlobStore&) = delete;
    BlobStore& operator=(const BlobStore&) = delete;
    ~BlobStore();

    // --- one blob comes, piece by piece
    /// Of at most so many bytes. kLimitExceeded: there is no room; kUnavailable: the host has none.
    Status begin(std::uint64_t bytes);
    Status append(std::string_view bytes);
    /// It is held once more. One that was there already takes no room.
    Status finish(const std::string& digest);
    /// Nothing of it stays. Without effect if none is on its way.
    void abandon();

    // --- those that are there
    bool contains(const std::string& digest) const { return blobs_.contains(digest); }
    /// Precondition: contains(digest).
    void hold(const std::string& digest) { ++blobs_.at(digest).holders; }
    /// Of one; nullopt: it is not there.
    std::optional<std::uint64_t> bytes_of(const std::string& digest) const;
    bool are_all_held() const;
    /// The last holder's drop removes it. Precondition: contains(digest).
    void drop(const std::string& digest);
    /// How many bytes were read; 0 at the end. kNotFound.
    Result<std::size_t> read(
        const std::string& digest, std::uint64_t offset, std::span<char> into) const;

    /// Of all blobs. Any thread.
    std::uint64_t bytes() const { return bytes_; }

    /// Gives the file away and leaves this store empty. Precondition: no blob is being written.
    PassedBlobs pass_on();
    /// Takes the file of another store over. This store must be empty. The contents have no holders
    /// yet: hold() adds them. kProtocol if contents lie outside the file or in one another.
    Status go_on(PassedBlobs passed);

 private:
    struct Blob {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
        std::size_t holders = 0;
    };
    struct Coming {
        std::uint64_t taken = 0;    // of the space
        std::uint64_t written = 0;  // behind end_
    };

    std::shared_ptr<BlobSpace> space_;
    std::uint64_t bytes_max_;
    UniqueFd file_;                      // none until there is something
    std::map<std::string, Blob> blobs_;  // by digest
    std::uint64_t end_ = 0;              // of what is in the file; a whole number of blocks
    std::unique_ptr<Coming> coming_;
    std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace cellkeep::checkpoint
