//! Reads an AMD machine.
