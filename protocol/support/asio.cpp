// SPDX-License-Identifier: Apache-2.0
// What Asio is made of, for all that define BOOST_ASIO_SEPARATE_COMPILATION
// (boost.org/doc/libs/1_81_0/doc/html/boost_asio/using.html, "Optional separate compilation").
#include <boost/asio/impl/src.hpp>
