// The settings with a syntax of their own, for the tables of rows.
#pragma once

#include "src/settings/setting_rows.h"

namespace ingot::settings {

extern const CustomValue kBindValue;
extern const CustomValue kDirValue;
extern const CustomValue kOutputLimitsValue;
extern const CustomValue kNotifyValue;
extern const CustomValue kReaderThreadsValue;
extern const CustomValue kPercentilesValue;
extern const CustomValue kOomScoresValue;
// Kept without a meaning:
extern const CustomValue kSaveValue;
extern const CustomValue kHzValue;
extern const CustomValue kReplicaOfValue;
extern const CustomValue kShutdownFlagsValue;

}  // namespace ingot::settings
