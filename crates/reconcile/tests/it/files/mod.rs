//! What a transaction does to files, nodes and units, also when it is killed.

mod concurrent_edits;
mod effects;
mod killed_runs;
mod real_crashes;
mod real_nodes;
mod reboot;
mod stored;
mod third_party;
