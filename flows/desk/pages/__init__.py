"""The pages, a module each: functions of a visit that give a response."""
