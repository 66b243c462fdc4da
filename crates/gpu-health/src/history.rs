//! Earlier values of counters, at a bounded number of points.

use std::collections::{BTreeMap, VecDeque};

use inventory::PciAddress;
use inventory::series::Label;

use crate::known::Known;
use crate::rules::{Is, Rules, When};

/// A window has so many points, whatever its length.
const POINTS: u64 = 60;

#[derive(Debug, Default)]
pub(crate) struct History {
    series: BTreeMap<(PciAddress, String, Vec<Label>), Series>,
}

#[derive(Debug)]
struct Series {
    within_s: u64,
    points: VecDeque<(u64, f64)>,
    /// The last value, and when it was read.
    last: (u64, f64),
}

impl History {
    /// Takes down a counter's value for a rule. Returns by how much it has grown, and in how many seconds: `None` for the
    /// first value, and for one that is lower than the last: the driver was loaded anew.
    pub(crate) fn grown(
        &mut self,
        (pci, rule, labels): (PciAddress, &str, &[Label]),
        within_s: u64,
        (now, value): (u64, f64),
    ) -> Option<(f64, u64)> {
        let key = (pci, rule.to_owned(), labels.to_vec());
        let new = || Series { within_s, points: VecDeque::new(), last: (now, value) };
        let series = self.series.entry(key).or_insert_with(new);
        let (at, last) = series.last;
        if value < last || now < at || series.within_s != within_s {
            *series = new();
        }
        series.last = (now, value);
        while series.points.front().is_some_and(|(at, _)| now - at > within_s) {
            series.points.pop_front();
        }
        let grown = series.points.front().map(|(at, first)| (value - first, now - at));
        let spacing = within_s.div_ceil(POINTS);
        if series.points.back().is_none_or(|(at, _)| now - at >= spacing) {
            series.points.push_back((now, value));
        }
        grown
    }

    /// Forgets what no rule asks for, and what has not been read for longer than a rule looks back.
    pub(crate) fn end(&mut self, rules: &Rules, known: &Known<'_>) {
        self.series.retain(|(pci, id, _), series| {
            let (at, _) = series.last;
            let is_recent = at <= known.now && known.now - at <= series.within_s;
            let is_there = known.cards.iter().any(|card| card.pci == Some(*pci));
            let is_asked = rules.rules.iter().any(|rule| {
                let When::Metric(of) = &rule.when else { return false };
                rule.id == *id && matches!(of.is, Is::Grown { .. })
            });
            is_recent && is_there && is_asked
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PCI: PciAddress = PciAddress { domain: 0, bus: 3, device: 0, function: 0 };

    fn grown(history: &mut History, at: u64, value: f64) -> Option<(f64, u64)> {
        history.grown((PCI, "rule", &[]), 600, (at, value))
    }

    #[test]
    fn a_counter_grows_from_its_oldest_value_in_the_window() {
        let mut history = History::default();
        assert_eq!(grown(&mut history, 1000, 5.0), None);
        assert_eq!(grown(&mut history, 1010, 7.0), Some((2.0, 10)));
        assert_eq!(grown(&mut history, 1600, 8.0), Some((3.0, 600)));
        assert_eq!(grown(&mut history, 1601, 8.0), Some((1.0, 591)));
    }

    #[test]
    fn a_counter_that_falls_or_a_clock_that_is_set_back_begins_anew() {
        let mut history = History::default();
        assert_eq!(grown(&mut history, 1000, 50.0), None);
        assert_eq!(grown(&mut history, 1010, 3.0), None);
        assert_eq!(grown(&mut history, 1020, 4.0), Some((1.0, 10)));
        assert_eq!(grown(&mut history, 500, 90.0), None);
        assert_eq!(grown(&mut history, 501, 91.0), Some((1.0, 1)));
    }

    #[test]
    fn a_series_has_a_bounded_number_of_points_however_often_it_is_read() {
        let mut history = History::default();
        for at in 0..5000_u32 {
            grown(&mut history, u64::from(at), f64::from(at));
            let points = history.series.values().map(|series| series.points.len()).sum::<usize>();
            assert!(points <= 62, "{points} points after {at} s");
        }
    }
}
