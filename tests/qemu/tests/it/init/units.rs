//! Parses the output of `systemctl show` (guest/system.sh).

use std::collections::BTreeMap;

/// Each unit's properties by its name without `.service`.
#[derive(Debug)]
pub(crate) struct Units(BTreeMap<String, BTreeMap<String, String>>);

impl Units {
    /// Blocks of `KEY=value` lines, with an empty line between two units.
    pub(crate) fn parse(text: &str) -> Self {
        let mut units = BTreeMap::new();
        for block in text.trim().split("\n\n") {
            let unit: BTreeMap<String, String> = block
                .lines()
                .filter_map(|line| line.split_once('='))
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect();
            units.insert(unit["Id"].trim_end_matches(".service").to_owned(), unit);
        }
        Self(units)
    }

    #[track_caller]
    pub(crate) fn of(&self, unit: &str, key: &str) -> &str {
        self.0.get(unit).and_then(|unit| unit.get(key)).unwrap_or_else(|| panic!("{unit} {key}: {self:#?}"))
    }

    /// A moment in microseconds of the machine's time, which has come.
    #[track_caller]
    pub(crate) fn us(&self, unit: &str, key: &str) -> u64 {
        let us = self.of(unit, &format!("{key}TimestampMonotonic")).parse().unwrap();
        assert!(us > 0, "{unit} {key} has not come: {self:#?}");
        us
    }
}
