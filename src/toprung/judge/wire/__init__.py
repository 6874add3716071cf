"""What crosses between processes: bounded JSON messages, sealed shared memory, described trees."""
