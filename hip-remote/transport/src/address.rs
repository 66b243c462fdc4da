//! Where a worker listens, as a user writes it.

use std::fmt::{Display, Formatter};
use std::path::PathBuf;

/// The worker's port where an address names none (TensorFusion's plan, 6.5).
pub const PORT: u16 = 50051;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A name, an IPv4 address or an IPv6 address without brackets.
    Tcp {
        host: String,
        port: u16,
    },
    Unix(PathBuf),
}

impl Address {
    /// `HOST`, `HOST:PORT`, `[IPV6]`, `[IPV6]:PORT` or `unix:/PATH`.
    ///
    /// # Errors
    /// The text is no such address: a sentence that quotes it.
    pub fn parse(text: &str) -> Result<Self, String> {
        // A host of this name would be written as a socket.
        let text = if text == "unix" { "unix:" } else { text };
        if text.contains("://") {
            return Err(format!("{text:?} is a URL: leave out what ends with ://, and write HOST:{PORT}"));
        }
        if let Some(path) = text.strip_prefix("unix:") {
            if !path.starts_with('/') {
                return Err(format!("{text:?} needs an absolute path: unix:/run/rocworker/hip.sock"));
            }
            return Ok(Self::Unix(PathBuf::from(path)));
        }
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let Some((host, port)) = rest.split_once(']') else {
                return Err(format!("{text:?} opens a bracket and closes none: write [::1]:{PORT}"));
            };
            if host.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(format!("{text:?} has brackets, and no IPv6 address stands in them"));
            }
            match port.strip_prefix(':') {
                None if !port.is_empty() => {
                    return Err(format!("{text:?} has {port:?} after its bracket: write [{host}]:{PORT}"));
                }
                port => (host, port),
            }
        } else {
            match text.split_once(':') {
                Some((_, port)) if port.contains(':') => {
                    return Err(format!(
                        "{text:?} has several colons: write an IPv6 address as [::1]:{PORT}"
                    ));
                }
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            }
        };
        if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control() || c == '/') {
            return Err(format!("{text:?} names no host: write HOST:{PORT} or unix:/PATH"));
        }
        let port = match port {
            None => PORT,
            Some(port) => match port.parse() {
                Ok(port) if port != 0 => port,
                _ => return Err(format!("{text:?} needs a port between 1 and 65535 after its colon")),
            },
        };
        Ok(Self::Tcp { host: host.to_owned(), port })
    }

    /// Addresses with commas between them, in their order.
    ///
    /// # Errors
    /// One of them is none, or the text is empty.
    pub fn list(text: &str) -> Result<Vec<Self>, String> {
        text.split(',').map(|address| Self::parse(address.trim())).collect()
    }
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_written_alike() {
        for (text, written) in [
            ("gpu", "gpu:50051"),
            ("gpu.example:7", "gpu.example:7"),
            ("192.0.2.1:65535", "192.0.2.1:65535"),
            ("[2001:db8::1]", "[2001:db8::1]:50051"),
            ("[::1]:9", "[::1]:9"),
            ("unix:/run/a b,c.sock", "unix:/run/a b,c.sock"),
        ] {
            assert_eq!(Address::parse(text).unwrap().to_string(), written);
        }
        let list = Address::list("a, b:1,unix:/c").unwrap();
        assert_eq!(list.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a:50051", "b:1", "unix:/c"]);
    }

    #[test]
    fn a_bad_address_is_refused_in_a_sentence_that_quotes_it() {
        for (text, says) in [
            ("", "names no host"),
            (":1", "names no host"),
            ("a b", "names no host"),
            ("http://a:1", "leave out what ends with ://"),
            ("\t\0://a", r#""\t\0://a" is a URL"#),
            ("a:", "needs a port"),
            ("a:0", "needs a port"),
            ("a:65536", "needs a port"),
            ("a:x", "needs a port"),
            ("::1", "several colons"),
            ("[::1", "closes none"),
            ("[a]:1", "no IPv6 address"),
            ("[::1]1", "after its bracket"),
            ("unix:run", "absolute path"),
            ("unix:", "absolute path"),
        ] {
            let sentence = Address::parse(text).unwrap_err();
            assert!(sentence.contains(says) && sentence.contains(&format!("{text:?}")), "{sentence}");
        }
        assert!(Address::list("a,,b").is_err());
        assert!(Address::list("a,unix").is_err());
    }
}
