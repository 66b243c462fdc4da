use std::fmt;
use std::str::FromStr;

/// A machine as passed to ssh: `[user@]name`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host {
    /// `None`: ssh's own configuration decides.
    pub user: Option<String>,
    /// A name that ssh knows, or an address.
    pub name: String,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.user {
            Some(user) => write!(f, "{user}@{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl FromStr for Host {
    type Err = String;

    /// # Errors
    /// Says in a sentence why it is not a host name.
    fn from_str(text: &str) -> Result<Self, String> {
        let (user, name) = match text.rsplit_once('@') {
            Some((user, name)) => (Some(user), name),
            None => (None, text),
        };
        // ssh would take a leading - for an option.
        let is_word = |word: &str| {
            !word.is_empty()
                && !word.starts_with('-')
                && word.chars().all(|c| c.is_ascii_alphanumeric() || "._-:%".contains(c))
        };
        if !is_word(name) || user.is_some_and(|user| !is_word(user)) {
            return Err(format!("{text:?} is not a host name: write NAME or USER@NAME"));
        }
        // An IPv6 address has more colons.
        if name.matches(':').count() == 1 {
            return Err(format!("{text:?} is not a host name: set the port in ~/.ssh/config (Port)"));
        }
        Ok(Self { user: user.map(str::to_owned), name: name.to_owned() })
    }
}
