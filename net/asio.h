// The parts of Boost.Asio that net/ uses, under the names it uses for them. Internal: no header
// that others include may include this one, so that nobody else pays its compile time.
#pragma once

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

namespace ingot::net {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using Executor = asio::io_context::executor_type;
// One type for TCP and unix sockets.
using Socket = asio::basic_stream_socket<asio::generic::stream_protocol, Executor>;

inline bool is_would_block(const ErrorCode& error) {
  return error == asio::error::would_block || error == asio::error::try_again ||
         error == asio::error::interrupted;
}

}  // namespace ingot::net
