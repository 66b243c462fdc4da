//! Subcommands that `rocworker remote` runs on the target machine.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Subcommand;
use config::{self, Config};
use fleet::remote::Scrape;
pub(super) use fleet::remote::exporter_config::{Listen, with_exporter};
pub(super) use fleet::remote::scrape::{nearest, scrape};
use root::Attributes;

use super::Outcome;
use super::output::print_text;
use super::session::{Misuse, Session};
use crate::memory::Memory;

/// More than a file with keys for TLS and passwords has.
const LIMIT: usize = 1 << 20;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Add the key exporter to the configuration, unless it already has these values
    Configure {
        /// Listen here
        #[arg(long, value_name = "ADDRESS")]
        listen: SocketAddr,
        /// Let the address of the configuration count, where it has one
        #[arg(long)]
        unless_set: bool,
        /// Replace another tool's rocm-exporter.service
        #[arg(long)]
        replace: bool,
        /// Write the new text into this file first
        #[arg(long, value_name = "FILE")]
        keep: PathBuf,
    },
    /// Wait until the exporter answers, then print its address as JSON
    Scrape {
        /// How long to try
        #[arg(long, value_name = "SECONDS", default_value_t = 0)]
        wait: u64,
    },
}

pub(crate) fn run(session: &Session, command: &Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Configure { listen, unless_set, replace, keep } => {
            let listen = if *unless_set { Listen::Default(*listen) } else { Listen::Asked(*listen) };
            if let Some(other) = Memory::read(&session.root)?.config.and_then(|applied| applied.other) {
                let other = other.display();
                let text = format!(
                    "this machine was set up with --config {other}: set exporter there, then rocworker --config {other} apply"
                );
                return Err(Misuse(text).into());
            }
            // remote's scripts save and restore only this file.
            let config = Config::read(&session.root)?;
            let Some(text) = with_exporter(&config, listen, *replace).map_err(Misuse)? else {
                return Ok(Outcome::Done);
            };
            let how = match root::if_there(session.root.stat(config::PATH))? {
                Some(meta) => Attributes { mode: meta.mode, owner: Some((meta.uid, meta.gid)) },
                None => Attributes { mode: 0o644, owner: None },
            };
            session.root.write(keep, text.as_bytes(), Attributes { mode: 0o600, owner: None })?;
            session.root.write(config::PATH, text.as_bytes(), how)?;
        }
        Command::Scrape { wait } => {
            let config = session.config_in_force()?;
            let tls = has_tls(session, &config)?;
            let listen = config.exporter.listen;
            scrape(nearest(listen), tls, Duration::from_secs(*wait))
                .map_err(|why| anyhow::anyhow!("{listen}: {why}"))?;
            print_text(&format!("{}\n", serde_json::to_string(&Scrape { listen, tls })?))?;
        }
    }
    Ok(Outcome::Done)
}

/// Whether the file of `exporter.web-config` asks for TLS.
fn has_tls(session: &Session, config: &Config) -> anyhow::Result<bool> {
    let Some(path) = &config.exporter.web_config else { return Ok(false) };
    let text = session.root.read_text(path, LIMIT)?;
    let document: yaml_serde::Value =
        yaml_serde::from_str(&text).with_context(|| path.display().to_string())?;
    Ok(document.get("tls_server_config").is_some_and(|keys| !keys.is_null()))
}
