// SPDX-License-Identifier: Apache-2.0
//
// One thread for work that would hold up the io_context thread: reading and hashing files. Jobs are
// done in slices, all jobs in turn, so that a long one does not keep a short one waiting. A job
// owns everything that it touches. run() is called on any thread; slices run on this one.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace cellkeep {

class WorkThread {
 public:
    enum class Slice { kMore, kDone };
    using Job = std::function<Slice()>;

    WorkThread();
    WorkThread(const WorkThread&) = delete;
    WorkThread& operator=(const WorkThread&) = delete;
    /// Waits for the slice that runs; jobs that are not done are dropped.
    ~WorkThread();

    /// The caller bounds how many of its jobs wait.
    void run(Job job);

 private:
    void work();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Job> jobs_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace cellkeep
