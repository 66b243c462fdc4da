//! Files beneath a directory.
