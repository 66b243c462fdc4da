//! Which processes are shown, and in which order.

use std::cmp::Ordering;

use inventory::snapshot::{Owner, Process};
use printable::printable;

use super::say;

/// A column by which processes are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    Pid,
    Name,
    Gpu,
    #[default]
    Vram,
    Units,
    Owner,
}

impl Sort {
    /// The columns from left to right.
    pub const ALL: [Self; 6] = [Self::Pid, Self::Name, Self::Gpu, Self::Vram, Self::Units, Self::Owner];

    pub fn heading(self) -> &'static str {
        match self {
            Self::Pid => "PID",
            Self::Name => "NAME",
            Self::Gpu => "GPU",
            Self::Vram => "VRAM",
            Self::Units => "CUS",
            Self::Owner => "POD, CONTAINER OR UNIT",
        }
    }

    /// What the column shows of a process.
    pub fn text(self, process: &Process) -> String {
        match self {
            Self::Pid => process.pid.to_string(),
            Self::Name => process.name.as_deref().map_or_else(|| say::UNKNOWN.to_owned(), printable),
            Self::Gpu => say::count(process.gpu.index),
            Self::Vram => say::bytes(process.vram_bytes),
            Self::Units => say::count(process.compute_units),
            Self::Owner => say::owner(process),
        }
    }

    /// The next column to the right, or to the left; at the end, the first from the other end.
    pub(super) fn step(self, is_forward: bool) -> Self {
        let count = Self::ALL.len();
        let at = Self::ALL.iter().position(|it| *it == self).unwrap_or(0);
        let next = if is_forward { at + 1 } else { at + count - 1 };
        Self::ALL.get(next % count).copied().unwrap_or_default()
    }

    /// What is used most comes first, names and numbers from the beginning.
    pub(super) fn is_descending(self) -> bool {
        matches!(self, Self::Vram | Self::Units)
    }

    fn compare(self, one: &Process, other: &Process, is_reversed: bool) -> Ordering {
        let is_descending = self.is_descending() != is_reversed;
        match self {
            Self::Pid => known(Some(one.pid), Some(other.pid), is_descending),
            Self::Name => known(one.name.as_ref(), other.name.as_ref(), is_descending),
            Self::Gpu => known(one.gpu.index, other.gpu.index, is_descending),
            Self::Vram => known(one.vram_bytes, other.vram_bytes, is_descending),
            Self::Units => known(one.compute_units, other.compute_units, is_descending),
            Self::Owner => known(owner(one), owner(other), is_descending),
        }
    }
}

fn owner(process: &Process) -> Option<String> {
    Some(say::owner(process)).filter(|owner| owner != say::UNKNOWN)
}

/// Orders two values. An unknown value comes last, in ascending and in descending order.
fn known<T: Ord>(one: Option<T>, other: Option<T>, is_descending: bool) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) if is_descending => other.cmp(&one),
        (Some(one), Some(other)) => one.cmp(&other),
        (one, other) => other.is_some().cmp(&one.is_some()),
    }
}

/// Whether the text stands in the process's name, container, pod, unit or number, or names its GPU: `gpu 3`.
pub(super) fn matches(process: &Process, text: &str) -> bool {
    let wanted = text.to_lowercase();
    let Process { pid, name, gpu, owner: Owner { container, unit, .. }, .. } = process;
    let pod = process.owner.pod_path();
    let texts = [name, container, &pod, unit];
    let has = |text: &str| text.to_lowercase().contains(&wanted);
    texts.into_iter().flatten().any(|text| has(text))
        || has(&pid.to_string())
        || gpu.index.is_some_and(|gpu| format!("gpu {gpu}") == wanted)
}

/// Sorts by a column. Equal processes are ordered by pid and GPU, so that their lines do not jump between readings.
pub(super) fn sort(processes: &mut [&Process], sort: Sort, is_reversed: bool) {
    processes.sort_by(|one, other| {
        sort.compare(one, other, is_reversed).then(one.pid.cmp(&other.pid)).then(one.gpu.cmp(&other.gpu))
    });
}

#[cfg(test)]
mod tests {
    use inventory::snapshot::GpuId;

    use super::*;

    fn process(pid: u32, name: Option<&str>, index: u32, vram_bytes: Option<u64>) -> Process {
        let name = name.map(str::to_owned);
        let gpu = GpuId { index: Some(index), ..GpuId::default() };
        Process { pid, name, gpu, vram_bytes, ..Process::default() }
    }

    #[test]
    fn what_is_unknown_comes_last_either_way() {
        let all =
            [process(1, Some("b"), 0, None), process(2, None, 1, Some(4)), process(3, Some("a"), 2, Some(8))];
        for (by, is_reversed, expected) in [
            (Sort::Vram, false, [3, 2, 1]),
            (Sort::Vram, true, [2, 3, 1]),
            (Sort::Name, false, [3, 1, 2]),
            (Sort::Name, true, [1, 3, 2]),
            (Sort::Pid, false, [1, 2, 3]),
            (Sort::Gpu, true, [3, 2, 1]),
            (Sort::Owner, false, [1, 2, 3]),
        ] {
            let mut shown: Vec<&Process> = all.iter().collect();
            sort(&mut shown, by, is_reversed);
            let pids: Vec<u32> = shown.iter().map(|it| it.pid).collect();
            assert_eq!(pids, expected, "{by:?} {is_reversed}");
        }
    }

    #[test]
    fn a_filter_finds_text_anywhere_and_a_gpu_by_its_number() {
        let mut it = process(4711, Some("Python3"), 3, None);
        it.owner = Owner {
            container: Some("c0ffee".to_owned()),
            namespace: Some("team-a".to_owned()),
            pod: Some("train-0".to_owned()),
            unit: Some("crio.service".to_owned()),
        };
        for text in ["python", "c0ff", "TRAIN", "471", "gpu 3", "crio"] {
            assert!(matches(&it, text), "{text}");
        }
        for text in ["java", "gpu 30", "gpu 2"] {
            assert!(!matches(&it, text), "{text}");
        }
    }

    #[test]
    fn the_columns_turn_round_at_their_ends() {
        assert_eq!(Sort::Owner.step(true), Sort::Pid);
        assert_eq!(Sort::Pid.step(false), Sort::Owner);
        let all = (0..6).fold(Sort::Pid, |it, _| it.step(true));
        assert_eq!(all, Sort::Pid);
    }
}
