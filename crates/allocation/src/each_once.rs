//! Texts in a row, of which each counts once: the paths of nodes, the names of devices.

use crate::by_path::ByPath;

/// The lengths at which such texts are told apart by their ends.
const LENGTHS: usize = 48;

/// Texts in a row, each with its place among those that were new.
///
/// They are mostly written in order: `/dev/dri/card9` and `/dev/dri/renderD136`, then those of the next GPU. One whose last
/// bytes make a greater number than those of every earlier one of its length is none of them. To see that takes a tenth of
/// what it takes to ask a map, so that one is made only when a text comes of which that is not true.
#[derive(Debug)]
pub struct EachOnce<'t> {
    texts: Vec<&'t str>,
    /// For each length the greatest number that the last bytes of a text made.
    greatest: [u64; LENGTHS],
    places: Option<ByPath<&'t str, usize>>,
}

impl<'t> EachOnce<'t> {
    /// With room for this many.
    #[must_use]
    pub fn with_capacity(texts: usize) -> Self {
        Self { texts: Vec::with_capacity(texts), greatest: [0; LENGTHS], places: None }
    }

    /// Adds a text, where it is new.
    ///
    /// # Errors
    /// It is there: at this place.
    #[inline]
    pub fn add(&mut self, text: &'t str) -> Result<(), usize> {
        let end = end(text);
        match self.greatest.get_mut(text.len()) {
            Some(greatest) if *greatest < end => *greatest = end,
            _ => {
                if let Some(earlier) = self.places().get(text) {
                    return Err(*earlier);
                }
            }
        }
        if let Some(places) = &mut self.places {
            places.insert(text, self.texts.len());
        }
        self.texts.push(text);
        Ok(())
    }

    /// Whether a text is there.
    #[inline]
    pub fn has(&mut self, text: &str) -> bool {
        let is_greater = self.greatest.get(text.len()).is_some_and(|greatest| *greatest < end(text));
        !is_greater && self.places().contains_key(text)
    }

    /// The place of a text. It is looked for first at a place where it may well be.
    #[inline]
    pub fn find(&mut self, text: &str, guess: usize) -> Option<usize> {
        if self.texts.get(guess).is_some_and(|there| *there == text) {
            return Some(guess);
        }
        self.places().get(text).copied()
    }

    #[cold]
    #[inline(never)]
    fn places(&mut self) -> &mut ByPath<&'t str, usize> {
        let texts = &self.texts;
        self.places.get_or_insert_with(|| texts.iter().enumerate().map(|(at, text)| (*text, at)).collect())
    }
}

/// The last eight bytes of a text as a number, or all that it has.
#[inline(always)]
fn end(text: &str) -> u64 {
    let bytes = text.as_bytes();
    match bytes.last_chunk() {
        Some(last) => u64::from_be_bytes(*last),
        None => bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::{EachOnce, LENGTHS};

    #[test]
    fn a_text_is_new_once_in_whatever_order_they_come() {
        let long = ["x".repeat(LENGTHS - 1), "x".repeat(LENGTHS), "x".repeat(LENGTHS + 9)];
        let [short, exact, longer] = long.each_ref().map(String::as_str);
        let in_order = ["/dev/kfd", "card1", "renderD128", "card2", "renderD129", "card10"];
        for texts in [
            &in_order[..],
            &["b", "a", "b", "a", "c", "", "", "aa", "a"],
            &["2", "1", "3", "1", "2", "0"],
            &["é", "zz", "é", "ab"],
            &[short, exact, longer, exact, short, longer],
            &["a", "c", "b", "b", "c", "d", "d"],
        ] {
            let mut once = EachOnce::with_capacity(0);
            let mut new: Vec<&str> = Vec::new();
            for text in texts {
                let expected = new.iter().position(|earlier| earlier == text);
                assert_eq!(once.has(text), expected.is_some(), "{text} of {texts:?}");
                assert_eq!(once.add(text), expected.map_or(Ok(()), Err), "{text} of {texts:?}");
                if expected.is_none() {
                    new.push(text);
                }
                for guess in 0..=new.len() {
                    let place = new.iter().position(|earlier| earlier == text);
                    assert_eq!(once.find(text, guess), place, "{text} of {texts:?}");
                }
                assert_eq!(once.find("none of them", 0), None);
            }
        }
    }

    #[test]
    fn the_nodes_of_a_large_machine_need_no_map() {
        let nodes: Vec<String> = (1..=64)
            .flat_map(|n| [format!("/dev/dri/card{n}"), format!("/dev/dri/renderD{}", 127 + n)])
            .collect();
        let mut once = EachOnce::with_capacity(nodes.len());
        assert!(nodes.iter().all(|node| once.add(node).is_ok()));
        assert!(nodes.iter().enumerate().all(|(at, node)| once.find(node, at) == Some(at)));
        assert!(once.places.is_none());
    }
}
