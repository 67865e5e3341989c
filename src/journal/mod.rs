//! The write-ahead record of a run: hash-chained JSON lines, fsync before every effect, a file lock.
