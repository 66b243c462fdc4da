//! Matches as a person reads them: one explanation for each message and GPU, however often it was logged.

use std::collections::HashMap;

use super::matches::Match;

/// How many pairs of message and GPU get an explanation of their own. A log that is made to have more is not read by a
/// person.
pub const MOST: usize = 256;

/// The first of equal matches.
#[derive(Debug)]
pub struct Group<'k> {
    pub first: Match<'k>,
    pub count: u64,
    pub last_line: u64,
    pub last_time: Option<String>,
}

/// What equal matches have in common: the message, the GPU, and the PCI ids in the line.
type Key<'k> = (&'k str, Option<String>, Option<(String, String)>);

#[derive(Debug, Default)]
pub struct Groups<'k> {
    groups: Vec<Group<'k>>,
    places: HashMap<Key<'k>, usize>,
    /// Matches of messages and GPUs beyond [`MOST`].
    pub more: u64,
    pub matches: u64,
}

impl<'k> Groups<'k> {
    pub fn add(&mut self, found: Match<'k>) {
        self.matches += 1;
        // KFD's lines have a card's PCI ids in place of its address.
        let ids = found.values.get("vendor").cloned().zip(found.values.get("device").cloned());
        let key = (found.message.id, found.advice.gpu.clone(), ids);
        if let Some(group) = self.places.get(&key).and_then(|place| self.groups.get_mut(*place)) {
            group.count += 1;
            group.last_line = found.line;
            group.last_time = found.time;
        } else if self.groups.len() < MOST {
            self.places.insert(key, self.groups.len());
            let (last_line, last_time) = (found.line, found.time.clone());
            self.groups.push(Group { first: found, count: 1, last_line, last_time });
        } else {
            self.more += 1;
        }
    }

    /// The most severe first, then by their first lines.
    #[must_use]
    pub fn by_severity(&self) -> Vec<&Group<'k>> {
        let mut groups: Vec<&Group<'k>> = self.groups.iter().collect();
        groups.sort_by_key(|group| (std::cmp::Reverse(group.first.message.severity), group.first.line));
        groups
    }
}
