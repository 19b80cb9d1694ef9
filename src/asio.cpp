// Asio, compiled once for the whole program (BOOST_ASIO_SEPARATE_COMPILATION): its headers alone then cost each file
// little.
#include <boost/asio/impl/src.hpp>
