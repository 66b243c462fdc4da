//! Subcommands that `rocworker remote` runs on the target machine. Each prints what the machine has as JSON.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use clap::Subcommand;
use fleet::remote::exporter_config::Listen;

use super::Outcome;
use super::output::print_text;
use super::session::{Misuse, Session};
use crate::exporter_setup::Setup;

/// Prometheus runs on another machine.
const EVERY_ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 9401));

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say what the machine has, or what the exporter lacks here
    Look,
    /// Say how the exporter is
    Check,
    /// Install the package and start the exporter, or revert what was begun
    Install {
        /// Listen here [default: the configuration's address, or 0.0.0.0:9401]
        #[arg(long, value_name = "ADDRESS")]
        listen: Option<SocketAddr>,
        /// Replace another tool's rocm-exporter.service
        #[arg(long)]
        replace: bool,
        /// Read the package from stdin, unless one is installed
        #[arg(long, value_name = "SHA256")]
        package: Option<String>,
    },
    /// Remove what install brought, and restore what was there before
    Uninstall {
        /// Also revert a unit that was edited since
        #[arg(long)]
        force: bool,
    },
}

pub(crate) fn run(session: &Session, command: &Command) -> anyhow::Result<Outcome> {
    let programs = session.programs.as_ref();
    let programs = programs.ok_or_else(|| Misuse("exporter cannot be used with --root".to_owned()))?;
    let setup = Setup::new(&session.root, programs);
    let found = match command {
        Command::Look => setup.look(),
        Command::Check => setup.check(Duration::ZERO),
        Command::Install { listen, replace, package } => {
            let listen = listen.map_or(Listen::Default(EVERY_ADDRESS), Listen::Asked);
            setup.install(listen, *replace, package.as_deref())
        }
        Command::Uninstall { force } => setup.uninstall(*force),
    };
    print_text(&format!("{}\n", serde_json::to_string(&found?)?))?;
    Ok(Outcome::Done)
}
