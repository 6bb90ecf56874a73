// INGOT_CHECK: what holds passes by, what does not ends the process and says so.
#include "storage/check.h"

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <catch2/catch.hpp>
#include <string>

namespace ingot::storage {

TEST_CASE("an invariant that holds costs nothing") {
  int evaluated = 0;
  INGOT_CHECK(++evaluated == 1);
  CHECK(evaluated == 1);
}

TEST_CASE("a broken invariant ends the process, in release builds too") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    // Not Catch's handler: that would report a failed test.
    signal(SIGABRT, SIG_DFL);
    INGOT_CHECK(2 + 2 == 5);
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char buffer[256];
  for (ssize_t bytes; (bytes = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    said.append(buffer, static_cast<size_t>(bytes));
  }
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
  CHECK(said.contains("broken invariant: 2 + 2 == 5"));
}

}  // namespace ingot::storage
