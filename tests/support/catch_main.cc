// The main function of every unit test executable: compiled once, because it takes ten seconds.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
