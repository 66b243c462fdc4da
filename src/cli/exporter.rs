//! What `rocworker remote` on another machine calls here; nothing else does.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use clap::Subcommand;
use root::Attributes;

use super::Outcome;
use super::output::print_text;
use super::session::{Misuse, Session};
use crate::config::{self, Config};
use crate::exporter_config::{Listen, with_exporter};
use crate::fleet::remote::Scrape;
use crate::fleet::remote::scrape::{nearest, scrape};

/// More than a file with keys for TLS and passwords has.
const LIMIT: usize = 1 << 20;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write the key exporter into the configuration, unless it says the same already
    Configure {
        /// Listen here
        #[arg(
            long,
            value_name = "ADDRESS",
            conflicts_with = "default_listen",
            required_unless_present = "default_listen"
        )]
        listen: Option<SocketAddr>,
        /// Listen here where the configuration says nothing
        #[arg(long, value_name = "ADDRESS")]
        default_listen: Option<SocketAddr>,
        /// Replace another's rocm-exporter.service
        #[arg(long)]
        replace: bool,
        /// Write the new text into this file first
        #[arg(long, value_name = "FILE")]
        keep: PathBuf,
    },
    /// Say as JSON where the exporter listens, once it answers
    Scrape {
        /// How long to try
        #[arg(long, value_name = "SECONDS", default_value_t = 0)]
        wait: u64,
    },
}

pub(crate) fn run(session: &Session, command: &Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Configure { listen, default_listen, replace, keep } => {
            let listen = match (listen, default_listen) {
                (Some(address), _) => Listen::Asked(*address),
                (None, Some(address)) => Listen::Default(*address),
                (None, None) => bail!("--listen is missing"),
            };
            // Scripts go by one file alone.
            let config = Config::read(&session.root)?;
            let Some(text) = with_exporter(&config, listen, *replace).map_err(Misuse)? else {
                return Ok(Outcome::Done);
            };
            let how = Attributes { mode: 0o644, owner: None };
            session.root.write(keep, text.as_bytes(), Attributes { mode: 0o600, owner: None })?;
            session.root.write(config::PATH, text.as_bytes(), how)?;
        }
        Command::Scrape { wait } => {
            let config = session.config_in_force()?;
            let tls = has_tls(session, &config);
            let listen = config.exporter.listen;
            let status = scrape(nearest(listen), tls, Duration::from_secs(*wait))
                .map_err(|why| anyhow::anyhow!("{listen}: {why}"))?;
            let answer = Scrape { listen: listen.to_string(), tls, status };
            print_text(&format!("{}\n", serde_json::to_string(&answer)?))?;
        }
    }
    Ok(Outcome::Done)
}

/// Whether the file of `exporter.web-config` asks for TLS.
fn has_tls(session: &Session, config: &Config) -> bool {
    let Some(path) = &config.exporter.web_config else { return false };
    let text = session.root.read_text(path, LIMIT).unwrap_or_default();
    let document: Result<yaml_serde::Value, _> = yaml_serde::from_str(&text);
    document.is_ok_and(|document| document.get("tls_server_config").is_some_and(|keys| !keys.is_null()))
}
