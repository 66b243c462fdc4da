use std::fmt;

/// The arguments are wrong, or the machine lacks something that must not be installed: nothing was tried.
/// Exit code 2.
#[derive(Debug)]
pub(crate) struct Refusal(String);

impl Refusal {
    /// The sentence says what is missing and what to do about it.
    // An anyhow::Error, because every caller returns one.
    #[expect(clippy::new_ret_no_self, reason = "a refusal is only ever made to be returned as an error")]
    pub(crate) fn new(sentence: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Self(sentence.into()))
    }
}

/// Refuses the arguments of a task that takes none.
///
/// # Errors
/// Where there is one.
pub(crate) fn no_argument(task: &str, arguments: &[String]) -> anyhow::Result<()> {
    if arguments.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(format!("`cargo xtask {task}` takes no argument")))
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}
