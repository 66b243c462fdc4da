//! The commands that an answer tells a person to run next: each works as it is printed.

use std::path::Path;
use std::sync::LazyLock;

use super::args;
use super::visible;

/// The options that name the machine and the configuration of an answer.
#[derive(Debug, Default)]
pub(crate) struct Options(String);

impl Options {
    pub(crate) fn of(args: &args::Options) -> Self {
        let root = Some(&*args.root).filter(|root| *root != Path::new("/"));
        let option = |name: &str, path: Option<&Path>| {
            path.map_or_else(String::new, |path| format!("{name} {} ", quoted(&path.to_string_lossy())))
        };
        Self(option("--root", root) + &option("--config", args.config.as_deref()))
    }

    /// The text, with these options in each command of this program.
    pub(crate) fn on(&self, text: &str) -> String {
        const PROGRAM: &str = "rocworker ";
        if self.0.is_empty() {
            return text.to_owned();
        }
        let (mut said, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once(PROGRAM) {
            let is_word =
                !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '-' | '.' | '_'));
            let word: String = after.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
            let options = if is_word && COMMANDS.contains(&word) { &*self.0 } else { "" };
            said += &format!("{before}{PROGRAM}{options}");
            rest = after;
        }
        said + rest
    }
}

static COMMANDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    visible::command().get_subcommands().map(|command| command.get_name().to_owned()).collect()
});

/// As a shell takes it for one word.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_get_the_options_and_other_words_do_not() {
        let options = Options("--root /m ".to_owned());
        for (text, shown) in [
            ("To revert: rocworker undo", "To revert: rocworker --root /m undo"),
            (
                "rocworker history lists them, rocworker undo reverts them",
                "rocworker --root /m history lists them, rocworker --root /m undo reverts them",
            ),
            ("`rocworker apply`", "`rocworker --root /m apply`"),
            ("rocworker manages nothing here", "rocworker manages nothing here"),
            ("rocworker.service, /usr/bin/rocworker apply", "rocworker.service, /usr/bin/rocworker apply"),
        ] {
            assert_eq!(options.on(text), shown);
        }
        assert_eq!(Options::default().on("rocworker undo"), "rocworker undo");
    }

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        assert_eq!(quoted("/srv/a machine's"), r"'/srv/a machine'\''s'");
        assert_eq!(quoted("/srv/m"), "/srv/m");
    }
}
