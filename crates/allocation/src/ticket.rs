//! A ticket: a create that waits for GPUs, and what it waits for.

use serde::{Deserialize, Serialize};

use crate::document::Document;
use crate::{Render, record::Creator};

/// A create that waits for GPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ticket {
    /// [`Document::SCHEMA_VERSION`].
    pub schema_version: u32,
    pub root: String,
    pub id: String,
    pub wants: Wants,
    /// The wall clock at its arrival, for people.
    pub since: String,
    /// The process that waits: the ticket counts while it lives.
    pub creator: Creator,
}

/// The GPUs for which a ticket waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wants {
    Named(Vec<Render>),
    Count(u32),
}

impl Document for Ticket {
    const SCHEMA_VERSION: u32 = 1;
    const NAME: &'static str = "ticket";
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
        for (from, to, expected) in [
            (":1,\"root", ":2,\"root", "has schema_version 2 of a newer version (this one reads 1)"),
            ("since", "sinc", "is no ticket: unknown field `sinc`"),
            (stored, "", "is no ticket: EOF"),
        ] {
            let message = Ticket::parse(&stored.replace(from, to)).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
