//! What the configuration has fetched: a URL, and the digest that the file must have.

use reconcile::Digest;

/// How a URL may begin from which files are fetched.
pub(super) const SCHEMES: [&str; 3] = ["http", "https", "file"];

/// A URL for a line of apt's sources, and for messages: every user of the machine could read a password in it.
pub(super) fn url(url: &str, schemes: &[&str]) -> Result<(), String> {
    let authority = url.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or(""));
    if let Some((_, host)) = authority.rsplit_once('@') {
        return Err(format!(
            "has a name or password in front of {host:?}, which everybody on this machine could read: put them into \
             /etc/apt/auth.conf.d (apt_auth.conf(5)), or those of a proxy, with the proxy, into /etc/apt/apt.conf.d, and \
             leave them out here"
        ));
    }
    let fits = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '<' | '>' | '\\' | '[' | ']');
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    if schemes.contains(&scheme) && !rest.is_empty() && url.chars().all(fits) {
        return Ok(());
    }
    Err(format!("{url:?} is no URL that begins with {}://", schemes.join(":// or ")))
}

/// Parses a SHA-256 as `sha256sum` prints it.
pub(super) fn digest(text: &str) -> Result<Digest, String> {
    Digest::parse(text).ok_or_else(|| format!("{text:?} is no SHA-256, as sha256sum prints it"))
}
