// What `ps` shows of the program: set-proc-title and proc-title-template.
#pragma once

#include <string>

#include "src/settings/settings.h"

namespace ingot::server {

// In main(), before there is a second thread: the title takes the place of the arguments, and the
// environment moves out of its way.
void make_room_for_title(int argc, char** argv);
// Does nothing where there is no room. Any thread, one at a time.
void show_title(const settings::Settings& settings, const std::string& config_file);

// proc-title-template with its variables filled in. `config_file`: empty, there is none.
std::string process_title(const settings::Settings& settings, const std::string& config_file);

}  // namespace ingot::server
