// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/session_starter.hpp"

#include "kernel-manager/execution/file_writing.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace cellkeep::session {

class SessionStarter::OnItsWay {
 public:
    OnItsWay(SessionStarter& starter, SessionPtr session)
        : starter_(starter), session_(std::move(session)) {
        starter_.on_their_way_.emplace_back(session_);
    }
    OnItsWay(const OnItsWay&) = delete;
    OnItsWay& operator=(const OnItsWay&) = delete;
    ~OnItsWay() {
        std::erase_if(starter_.on_their_way_, [this](const auto& one) {
            const auto alive = one.lock();
            return !alive || alive == session_;
        });
    }

 private:
    SessionStarter& starter_;
    const SessionPtr session_;
};

std::shared_ptr<SessionStarter> SessionStarter::create(boost::asio::io_context& io, Hooks hooks) {
    return std::shared_ptr<SessionStarter>(new SessionStarter(io, std::move(hooks)));
}

SessionStarter::OnEnd SessionStarter::later(OnEnd on_end) const {
    return [&io = io_, on_end = std::move(on_end)](const std::string& session_id, Death reason) {
        boost::asio::post(io, [on_end, session_id, reason] { on_end(session_id, reason); });
    };
}

boost::asio::awaitable<Status> SessionStarter::start(
    SessionEntry& entry, SessionFactory::Order order, OnEnd on_end) {
    const auto self = shared_from_this();
    order.slot = entry.slot.value();
    order.kernel_id = entry.kernel_id.value();
    order.on_end_requested = later(std::move(on_end));
    auto made = co_await hooks_.make(std::move(order));
    BOOST_OUTCOME_CO_TRY(entry.session, std::move(made));
    const OnItsWay on_its_way(*this, entry.session);
    Status started = co_await entry.session->start();
    hooks_.note_start(*entry.session, started.has_value());
    if (started.has_error()) {
        hooks_.remove(std::move(entry), {Death::Kind::kStartFailed, 0});
        co_return not_created(std::move(started).error());
    }
    co_return ok();
}

boost::asio::awaitable<Status> SessionStarter::adopt(
    SessionEntry& entry, SessionOptions options, OnEnd on_end) {
    const auto self = shared_from_this();
    const SessionPtr spare = entry.session;
    spare->set_on_end_requested([on_end = later(std::move(on_end)),
                                 id = spare->id()](Death reason) { on_end(id, reason); });
    const OnItsWay on_its_way(*this, spare);
    Status adopted = co_await spare->adopt(entry.kernel_id.value(), std::move(options));
    if (adopted.has_error()) {
        hooks_.remove(
            SessionEntry{std::exchange(entry.session, nullptr), std::move(entry.slot), {}},
            {Death::Kind::kStartFailed, 0});
    }
    co_return adopted;
}

void SessionStarter::stop(Death reason) {
    for (const auto& one : std::exchange(on_their_way_, {})) {
        if (const auto session = one.lock()) {
            session->close(reason);
        }
    }
}

}  // namespace cellkeep::session
