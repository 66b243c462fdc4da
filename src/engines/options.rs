//! Options of a command line, as the flag packages of Go take them that engines use.

/// With how many dashes an option may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dashes {
    /// pflag of docker and go-flags of Concourse: one dash is for the letters.
    Two,
    /// urfave/cli of containerd, on Go's own flag package.
    OneOrTwo,
}

impl Dashes {
    /// An option's name, and its value where that stands in the same word.
    pub(super) fn option(self, word: &str) -> Option<(&str, Option<&str>)> {
        let one = || word.strip_prefix('-').filter(|_| self == Self::OneOrTwo);
        let option = word.strip_prefix("--").or_else(one)?;
        Some(option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value))))
    }

    /// Of these options, which have values, what is said, in its order: behind `=` or as the next word. `None`: the line
    /// ends before the value.
    pub(super) fn said<'a>(self, words: &'a [String], names: &[&str]) -> Vec<(&'a str, Option<&'a str>)> {
        let mut said = Vec::new();
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            if let Some((name, value)) = self.option(word).filter(|(name, _)| names.contains(name)) {
                said.push((name, value.or_else(|| words.next())));
            }
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_behind_an_equals_sign_or_as_the_next_word() {
        let line = "program --a=1 -a 2 --b --a --a= x -a=3 -- --a";
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        for (dashes, names, expected) in [
            (Dashes::Two, &["a"][..], &[("a", Some("1")), ("a", Some("--a=")), ("a", None)][..]),
            (Dashes::Two, &["a", "b"], &[("a", Some("1")), ("b", Some("--a")), ("a", Some("")), ("a", None)]),
            (
                Dashes::OneOrTwo,
                &["a"],
                &[("a", Some("1")), ("a", Some("2")), ("a", Some("--a=")), ("a", Some("3")), ("a", None)],
            ),
        ] {
            assert_eq!(dashes.said(&words, names), expected, "{dashes:?} {names:?}");
        }
        assert_eq!((Dashes::Two.option("-a"), Dashes::OneOrTwo.option("a")), (None, None));
    }
}
