//! Decides which paths a reader leaves alone, because a read of them hangs.
//!
//! A card that has hung has 60 such files. So where several files of a device hang, no other file of the
//! device is read. Files that answered in between are still read: PCI's own code answers them, so that the
//! card keeps its name.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Folders in which each name is a device, or a part of one.
const DEVICES: &[&str] = &["/sys/bus/pci/devices", "/sys/class/drm", "/sys/class/kfd/kfd/topology/nodes"];

/// A device hangs as a whole once this many of its files hang.
const MOST_OF_A_DEVICE: usize = 5;

/// How long a device that hung is left alone after its reads came back: a device that answers late would make
/// every run late.
const BACK_OFF: Duration = Duration::from_secs(60);

/// The reads that have not come back.
#[derive(Debug, Default)]
pub struct Stuck {
    reads: BTreeMap<PathBuf, Waiting>,
    /// Files of devices that have answered since the last run began, or while another file of their device hung.
    answered: BTreeSet<PathBuf>,
}

#[derive(Debug)]
struct Waiting {
    since: Instant,
    /// When the read came back after all.
    back: Option<Instant>,
}

impl Stuck {
    /// A read of this path has not come back.
    pub fn hangs(&mut self, path: &Path, since: Instant) {
        self.reads.insert(path.to_owned(), Waiting { since, back: None });
        let Some(device) = device(path) else { return };
        // If a file that has answered hangs too, no other file of the device is safe.
        if self.of(device).count() > MOST_OF_A_DEVICE {
            self.answered.retain(|path| !path.starts_with(device));
        }
    }

    /// A read of this path has come back; `late`: after [`Stuck::hangs`].
    pub fn came_back(&mut self, path: &Path, late: bool) {
        if late {
            if let Some(waiting) = self.reads.get_mut(path) {
                waiting.back = Some(Instant::now());
            }
        } else if device(path).is_some() && !self.answered.contains(path) {
            self.answered.insert(path.to_owned());
        }
    }

    /// Whether no read hangs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// Whether a read of this very path hangs.
    #[must_use]
    pub fn has(&self, path: &Path) -> bool {
        self.reads.contains_key(path)
    }

    /// How long this path, or its device, has not answered.
    #[must_use]
    pub fn refuses(&self, path: &Path) -> Option<Duration> {
        if self.reads.is_empty() {
            return None;
        }
        if let Some(waiting) = self.reads.get(path) {
            return Some(waiting.since.elapsed());
        }
        let device = device(path)?;
        let first = self.of(device).map(|(_, waiting)| waiting.since).min()?;
        (self.is_given_up(device) && !self.answered.contains(path)).then(|| first.elapsed())
    }

    /// Called before a run: allows new reads of paths that have answered.
    pub fn forget(&mut self) {
        let again = |(path, waiting): (&PathBuf, &Waiting)| {
            let back = waiting.back?;
            let is_early = back.elapsed() < BACK_OFF && device(path).is_some_and(|it| self.is_given_up(it));
            (!is_early).then(|| path.clone())
        };
        let again: Vec<_> = self.reads.iter().filter_map(again).collect();
        self.reads.retain(|path, _| !again.contains(path));
        let answered = std::mem::take(&mut self.answered);
        let is_needed = |path: &PathBuf| device(path).is_some_and(|device| self.of(device).next().is_some());
        self.answered = answered.into_iter().filter(is_needed).collect();
    }

    /// The paths, and the folders of devices that hang.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        let devices = self.reads.keys().filter_map(|path| device(path)).filter(|it| self.is_given_up(it));
        let all: BTreeSet<&Path> = devices.chain(self.reads.keys().map(PathBuf::as_path)).collect();
        all.into_iter().map(Path::to_owned).collect()
    }

    fn is_given_up(&self, device: &Path) -> bool {
        self.of(device).count() >= MOST_OF_A_DEVICE
    }

    /// The reads of a device. Paths in order are in the order of their components.
    fn of<'s>(&'s self, device: &'s Path) -> impl Iterator<Item = (&'s PathBuf, &'s Waiting)> {
        let beneath = self.reads.range::<Path, _>((Bound::Included(device), Bound::Unbounded));
        beneath.take_while(move |(path, _)| path.starts_with(device))
    }
}

/// The folder of the device that a file belongs to.
#[must_use]
pub fn device(path: &Path) -> Option<&Path> {
    path.ancestors().find(|folder| folder.parent().is_some_and(|above| DEVICES.iter().any(|it| above == *it)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: &str = "/sys/bus/pci/devices/0000:03:00.0";

    fn file(name: &str) -> PathBuf {
        Path::new(CARD).join(name)
    }

    fn hung(files: usize) -> Stuck {
        let mut stuck = Stuck::default();
        for number in 0..files {
            stuck.came_back(&file("vendor"), false);
            stuck.hangs(&file(&number.to_string()), Instant::now());
        }
        stuck
    }

    #[test]
    fn a_file_belongs_to_the_card_or_the_node_that_it_is_beneath() {
        for (path, expected) in [
            ("/sys/bus/pci/devices/0000:03:00.0/hwmon/hwmon1/temp1_input", Some(CARD)),
            ("/sys/class/drm/renderD128/device/xcp/xcp_metrics", Some("/sys/class/drm/renderD128")),
            (CARD, Some(CARD)),
            ("/sys/class/drm", None),
            ("/sys/class/kfd/kfd/topology/nodes/1/properties", Some("/sys/class/kfd/kfd/topology/nodes/1")),
            ("/sys/class/kfd/kfd/topology/generation_id", None),
        ] {
            assert_eq!(device(Path::new(path)), expected.map(Path::new), "{path}");
        }
    }

    #[test]
    fn a_device_hangs_as_a_whole_with_five_files_and_keeps_what_answered() {
        let stuck = hung(MOST_OF_A_DEVICE - 1);
        assert!(stuck.refuses(&file("0")).is_some());
        assert!(stuck.refuses(&file("other")).is_none());
        let mut stuck = hung(MOST_OF_A_DEVICE);
        assert!(stuck.refuses(&file("other")).is_some());
        assert!(stuck.refuses(&file("vendor")).is_none());
        assert!(stuck.refuses(Path::new("/sys/bus/pci/devices/0000:03:00.01/vendor")).is_none());
        assert_eq!(stuck.paths()[0], Path::new(CARD));
        // What answered and then hangs too shows that no other file is safe.
        stuck.hangs(&file("vendor"), Instant::now());
        stuck.came_back(&file("class"), false);
        assert!(stuck.refuses(&file("vendor")).is_some());
    }

    #[test]
    fn what_answered_in_an_earlier_run_is_not_asked_of_a_device_that_hangs() {
        let mut stuck = Stuck::default();
        let files: Vec<PathBuf> = (0..60).map(|number| file(&number.to_string())).collect();
        files.iter().for_each(|path| stuck.came_back(path, false));
        for _ in 0..2 {
            stuck.forget();
            stuck.came_back(&file("vendor"), false);
            let asked: Vec<_> = files.iter().filter(|path| stuck.refuses(path).is_none()).cloned().collect();
            asked.iter().take(MOST_OF_A_DEVICE).for_each(|path| stuck.hangs(path, Instant::now()));
            let asked = files.iter().filter(|path| stuck.refuses(path).is_none()).count();
            assert_eq!((asked, stuck.reads.len()), (0, MOST_OF_A_DEVICE));
            assert!(stuck.refuses(&file("vendor")).is_none(), "the card keeps its name");
        }
    }

    #[test]
    fn a_device_that_hangs_in_the_middle_of_a_run_costs_one_file_more() {
        let mut stuck = Stuck::default();
        let files: Vec<PathBuf> = (0..60).map(|number| file(&number.to_string())).collect();
        files.iter().for_each(|path| stuck.came_back(path, false));
        for path in &files {
            if stuck.refuses(path).is_none() {
                stuck.hangs(path, Instant::now());
            }
        }
        assert_eq!(stuck.reads.len(), MOST_OF_A_DEVICE + 1);
    }

    #[test]
    fn a_single_file_that_came_back_is_asked_again_by_the_next_run() {
        let mut stuck = hung(1);
        stuck.came_back(&file("0"), true);
        assert!(stuck.refuses(&file("0")).is_some(), "in the same run");
        stuck.forget();
        assert!(stuck.refuses(&file("0")).is_none());
        assert!(stuck.paths().is_empty() && stuck.answered.is_empty());
    }

    #[test]
    fn a_device_whose_reads_came_back_is_left_alone_for_a_minute() {
        let mut stuck = hung(MOST_OF_A_DEVICE);
        for number in 0..MOST_OF_A_DEVICE {
            stuck.came_back(&file(&number.to_string()), true);
        }
        stuck.forget();
        assert!(stuck.refuses(&file("other")).is_some());
        for waiting in stuck.reads.values_mut() {
            waiting.back = Instant::now().checked_sub(BACK_OFF);
        }
        stuck.forget();
        assert!(stuck.refuses(&file("other")).is_none());
        assert!(stuck.reads.is_empty() && stuck.answered.is_empty());
    }
}
