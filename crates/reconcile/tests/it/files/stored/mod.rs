//! Stored files of schema_version 1, with an entry of every kind, are read whole and written as they were.

use reconcile::{Store, history};
use serde_json::Value;

use crate::machine::Machine;

const RECEIPT: &str = include_str!("receipt-1.json");
const HISTORY: &str = include_str!("history-1.json");

/// Root's folders and files: the receipt of anyone else is not believed.
fn machine() -> Machine {
    let machine = Machine::new();
    machine.put("/var/lib/rocworker/receipt.json", RECEIPT);
    machine.put("/var/lib/rocworker/history.json", HISTORY);
    machine
}

#[test]
fn a_receipt_of_version_1_is_read_and_written_byte_for_byte() {
    let machine = machine();
    let root = machine.root();
    let receipt = Store::new(&root).receipt().unwrap();
    assert_eq!(serde_json::to_string_pretty(&receipt).unwrap() + "\n", RECEIPT);
}

#[test]
fn a_history_of_version_1_is_read_and_written_byte_for_byte() {
    let machine = machine();
    let events = history::read(&machine.root()).unwrap();
    let stored: Value = serde_json::from_str(HISTORY).unwrap();
    assert_eq!(serde_json::to_value(events).unwrap(), stored["events"]);
}
