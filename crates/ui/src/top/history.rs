//! The last readings of each card, for sparklines.

use std::collections::{BTreeMap, VecDeque};

use inventory::snapshot::Snapshot;

use super::rows::CardKey;

/// How many readings are kept: more than the widest sparkline shows.
const MOST: usize = 32;

/// The eight heights of a column of text.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

#[derive(Debug, Clone, Default)]
pub(super) struct History {
    cards: BTreeMap<CardKey, Readings>,
}

/// The oldest first; `None` where a reading gave no value.
#[derive(Debug, Clone, Default)]
pub(super) struct Readings {
    pub(super) celsius: VecDeque<Option<f64>>,
    pub(super) watts: VecDeque<Option<f64>>,
}

impl History {
    /// Adds a reading. Forgets the cards that it does not have.
    pub(super) fn add(&mut self, snapshot: &Snapshot) {
        let mut cards = BTreeMap::new();
        for card in &snapshot.cards {
            let key = CardKey::of(card);
            let mut readings = self.cards.remove(&key).unwrap_or_default();
            push(&mut readings.celsius, card.limiting_celsius());
            push(&mut readings.watts, card.watts());
            cards.insert(key, readings);
        }
        self.cards = cards;
    }

    /// Leaves a gap for a reading that failed.
    pub(super) fn miss(&mut self) {
        for readings in self.cards.values_mut() {
            push(&mut readings.celsius, None);
            push(&mut readings.watts, None);
        }
    }

    pub(super) fn of(&self, card: &CardKey) -> Option<&Readings> {
        self.cards.get(card)
    }
}

fn push(values: &mut VecDeque<Option<f64>>, value: Option<f64>) {
    values.push_back(value);
    if values.len() > MOST {
        values.pop_front();
    }
}

/// The last values as bars, the newest at the right end; a blank where nothing is known.
pub(super) fn sparkline(values: &VecDeque<Option<f64>>, lowest: f64, highest: f64, width: usize) -> String {
    let bar = |value: &Option<f64>| value.map_or(' ', |value| height(value, lowest, highest));
    let shown: String = values.iter().skip(values.len().saturating_sub(width)).map(bar).collect();
    format!("{shown:>width$}")
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 7")]
fn height(value: f64, lowest: f64, highest: f64) -> char {
    let share = if highest > lowest { (value - lowest) / (highest - lowest) } else { 0.0 };
    let step = (share * 8.0).clamp(0.0, 7.0) as usize;
    BARS.get(step).copied().unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_ends_with_the_newest_value_and_leaves_a_blank_for_what_is_unknown() {
        let values: VecDeque<_> = [Some(0.0), Some(50.0), None, Some(99.0), Some(250.0)].into();
        assert_eq!(sparkline(&values, 0.0, 100.0, 6), " ▁▅ ██");
        assert_eq!(sparkline(&values, 0.0, 100.0, 2), "██");
        assert_eq!(sparkline(&values, 0.0, 0.0, 3), " ▁▁");
    }

    #[test]
    fn history_is_bounded_and_forgets_a_card_that_is_gone() {
        let mut history = History::default();
        let card = inventory::snapshot::Card { pci: "0000:05:00.0".parse().ok(), ..Default::default() };
        let key = CardKey::of(&card);
        let snapshot = Snapshot { cards: vec![card], ..Snapshot::default() };
        (0..1000).for_each(|_| history.add(&snapshot));
        assert_eq!(history.of(&key).unwrap().watts.len(), MOST);
        history.add(&Snapshot::default());
        assert!(history.of(&key).is_none());
    }
}
