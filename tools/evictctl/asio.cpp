// Asio, compiled once for the program, and not in its library: a test that links evictd as well has evictd's. Of two,
// one would be told of what the other forgets.
#include <boost/asio/impl/src.hpp>
