// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the ZeroMQ front share: an io_context that is driven until something is true,
// and a plain Jupyter client on libzmq made from a connection file.
#pragma once

#include "kernel-manager/jupyter/peer_log.hpp"
#include "kernel-manager/jupyter/zmq/zmq_front.hpp"
#include "protocol/connection_file.hpp"
#include "protocol/message.hpp"
#include "protocol/signer.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/jupyter/fake_session.hpp"

#include <boost/asio/io_context.hpp>
#include <zmq.hpp>

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::jupyter::test {

using cellkeep::test::TemporaryDirectory;

/// Runs handlers until done() is true; false if that takes longer than 40 seconds.
bool run_until(boost::asio::io_context& io, const std::function<bool()>& done);

using Frames = std::vector<std::string>;

void send_frames(zmq::socket_t& socket, const Frames& frames);
std::optional<Frames> try_receive_frames(zmq::socket_t& socket);

/// Whether a socket has a connection: what is sent to one that has just ended is lost.
class ConnectionWatch {
 public:
    /// The socket must outlive this; it may be closed before.
    ConnectionWatch(zmq::context_t& context, zmq::socket_t& socket);
    ConnectionWatch(const ConnectionWatch&) = delete;
    ConnectionWatch& operator=(const ConnectionWatch&) = delete;
    ~ConnectionWatch();
    /// If there is a connection, waits for its end; not if one has ended since the last call,
    /// because there may be the next one already.
    void wait_until_ended();

 private:
    bool take_event(zmq::recv_flags flags);

    zmq::socket_t& socket_;
    zmq::socket_t events_;
    bool connected_ = false;
    bool ended_ = false;  // since the last call
    bool stopped_ = false;
};

class ZmqTestClient {
 public:
    ZmqTestClient(zmq::context_t& context, const std::string& connection_file);

    /// Signed with the key of the connection file, or with another one.
    Frames sign(const protocol::Message& message) const;
    protocol::Message send(
        protocol::Channel channel,
        const std::string& msg_type,
        const nlohmann::json& content = nlohmann::json::object());
    /// A message whose signature is right, or nothing yet. A wrong one fails the test.
    std::optional<protocol::Message> try_receive(protocol::Channel channel);
    void subscribe(const std::string& topic = "");
    /// After the end of the server's sockets: what is sent from now on waits for the next ones.
    void wait_until_parted();
    zmq::socket_t& socket(protocol::Channel channel);

    protocol::ConnectionInfo info;
    std::string session_id;
    std::string last_topic;  // of the iopub message received last
    zmq::socket_t shell;
    zmq::socket_t control;
    zmq::socket_t stdin_socket;
    zmq::socket_t iopub;
    zmq::socket_t heartbeat;

 private:
    protocol::Signer signer_;
    std::list<ConnectionWatch> watches_;  // of the sockets that send
};

/// A front with one fake session, whose connection file a client has opened.
struct Stage {
    explicit Stage(ZmqFrontConfig config = {}, bool opened = true);
    ~Stage();
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

    bool run_until(const std::function<bool()>& done) { return test::run_until(io, done); }
    /// The next message of this client on this channel; fails the test if none comes.
    protocol::Message receive(ZmqTestClient& client, protocol::Channel channel);
    std::uint64_t count(PeerEvent event) const;

    TemporaryDirectory directory;
    boost::asio::io_context io;
    std::vector<std::string> log;
    std::shared_ptr<FakeSession> session = std::make_shared<FakeSession>();
    std::unique_ptr<ZmqFront> front;
    zmq::context_t context;  // of the clients
};

}  // namespace cellkeep::jupyter::test
