//! What is read of cards: captured ones, invented ones, and files that hold nothing or nonsense.

mod probe;
