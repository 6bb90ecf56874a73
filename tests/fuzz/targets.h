// What the fuzzers do with their input: plain functions, so that the unit tests replay every input
// that once was worth keeping (corpus/). None needs more than its bytes, and what one finds wrong
// ends the process (INGOT_CHECK). One thread.
#pragma once

#include <string_view>

namespace ingot::fuzz {

// Bytes of a client: read in pieces they are the same commands as read whole, and memory stays
// bounded. The first two bytes say how they are cut and what becomes of large arguments.
void resp(std::string_view input);

// A configuration file: what it sets is printed, set again and written to a file without a change.
// Each line is a CONFIG SET, too.
void config(std::string_view input);

// Rules of ACL SETUSER, one a line, and all of it as an ACL file: what was accepted is described by
// rules that come to the same, and what was refused has changed nothing.
void acl(std::string_view input);

// What stands before the footer of RESTORE's payload, behind a byte of options: what was stored is
// sound, and the same when it is dumped and restored again.
void restore(std::string_view input);

// Lines of commands, in the quotes of inline commands, to two servers in this process, which keep
// collections in their two forms: each line has one reply, on both the same, and what is stored in
// the end is sound. "~" before a line: by another client; "+5": five milliseconds go by.
void commands(std::string_view input);

// Behind a letter: the body of a script (e) or of a library (f), a text for cmsgpack (m) or cjson
// (j), a format for struct and behind a line break its bytes (s), a payload of FUNCTION RESTORE
// without its footer (r). The server's memory and the next script are as they were.
void script(std::string_view input);

}  // namespace ingot::fuzz
