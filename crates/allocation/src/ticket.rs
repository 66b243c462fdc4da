//! A ticket: a create that waits for GPUs, and what it waits for.

use serde::{Deserialize, Serialize};

use crate::{Render, record::Creator};

/// The schema version of the tickets that this version writes.
pub const SCHEMA_VERSION: u32 = 1;

/// One that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ticket {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    pub root: String,
    pub id: String,
    pub wants: Wants,
    /// The wall clock at its arrival, for people.
    pub since: String,
    /// Who waits: a ticket counts while this process lives.
    pub creator: Creator,
}

/// What a ticket is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wants {
    Named(Vec<Render>),
    Count(u32),
}

impl Ticket {
    /// Reads a ticket.
    ///
    /// # Errors
    /// It is malformed, has unknown keys, or is not of this version. A ticket lives a minute at most.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let ticket: Self = serde_json::from_str(text)?;
        if ticket.schema_version == SCHEMA_VERSION {
            Ok(ticket)
        } else {
            Err(serde::de::Error::custom("another schema_version"))
        }
    }

    /// The ticket as text, one line.
    ///
    /// # Errors
    /// None that can be met: every part of a ticket can be written as JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self).map(|line| line + "\n")
    }
}

impl std::fmt::Display for Wants {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(1) => f.write_str("any GPU"),
            Self::Count(count) => write!(f, "any {count} GPUs"),
            Self::Named(renders) => {
                for (at, render) in renders.iter().enumerate() {
                    if at > 0 {
                        f.write_str(" and ")?;
                    }
                    write!(f, "{render}")?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_stored_in_this_form() {
        let stored = r#"{"schema_version":1,"root":"/run/runc","id":"c1","wants":{"named":["/dev/dri/renderD128","/dev/dri/renderD130"]},"since":"x","creator":{"pid":1,"start_time":2,"boot_id":"b"}}
"#;
        let ticket = Ticket::parse(stored).unwrap();
        assert_eq!(ticket.wants.to_string(), "renderD128 and renderD130");
        assert_eq!(ticket.to_json().unwrap(), stored);
        for other in
            [stored.replace(":1,\"root", ":2,\"root"), stored.replace("since", "sinc"), String::new()]
        {
            assert!(Ticket::parse(&other).is_err(), "{other}");
        }
    }
}
