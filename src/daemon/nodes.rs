//! Device nodes that another program keeps setting. A receipt counts no repairs of a node, for each start makes it
//! anew.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The first time, which is no repair, and as many repairs as of a managed file before its path counts as contested.
const TIMES: usize = 4;

/// The daemon counts no setting of a node that is longer ago. Repairs of files have this limit too.
const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);

/// When the daemon set each node. The key has the inode too, so that another node at the path begins with no entries.
#[derive(Debug, Clone, Default)]
pub struct Nodes(BTreeMap<(PathBuf, u64), Vec<Duration>>);

impl Nodes {
    pub fn was_set(&mut self, path: &Path, inode: u64, now: Duration) {
        self.0.retain(|(at, other), _| at != path || *other == inode);
        let set = self.0.entry((path.to_owned(), inode)).or_default();
        set.retain(|at| is_recent(*at, now));
        set.push(now);
    }

    /// Nodes that the daemon has stopped repairing. `inode`: which node is at a path now.
    pub fn given_up(&self, now: Duration, inode: impl Fn(&Path) -> Option<u64>) -> BTreeSet<PathBuf> {
        let is_given_up = |((path, node), set): &(&(PathBuf, u64), &Vec<Duration>)| {
            set.iter().filter(|at| is_recent(**at, now)).count() >= TIMES && inode(path) == Some(*node)
        };
        self.0.iter().filter(is_given_up).map(|((path, _), _)| path.clone()).collect()
    }
}

fn is_recent(at: Duration, now: Duration) -> bool {
    now.saturating_sub(at) < REMEMBERED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_repair_of_a_node_is_the_last_until_it_is_made_anew_or_a_day_has_passed() {
        let (path, s) = (Path::new("/dev/kfd"), Duration::from_secs);
        let mut nodes = Nodes::default();
        for n in 0..4 {
            assert!(nodes.given_up(s(n), |_| Some(7)).is_empty(), "after {n}");
            nodes.was_set(path, 7, s(n));
        }
        assert_eq!(nodes.given_up(s(10), |_| Some(7)), [path.to_owned()].into());
        assert!(nodes.given_up(s(10), |_| Some(8)).is_empty(), "another node");
        assert!(nodes.given_up(s(10), |_| None).is_empty(), "it has gone");
        assert!(nodes.given_up(s(24 * 3600 + 10), |_| Some(7)).is_empty(), "a day later");
        nodes.was_set(path, 8, s(11));
        assert!(nodes.given_up(s(11), |_| Some(8)).is_empty(), "made anew, and set once");
    }
}
