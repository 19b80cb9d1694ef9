// Asio's OpenSSL part, compiled once for the whole program.
#include <boost/asio/ssl/impl/src.hpp>
