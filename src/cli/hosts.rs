//! The machines that `--host`, `--hosts` and the arguments of `remote` name.

use std::time::Duration;

use anyhow::anyhow;
use config::Host;

use super::options::Options;
use super::session::{Misuse, Session};

/// A machine, by the name that the user gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) host: Host,
}

/// A line that says how the command ended for a machine, and how many machines have ended.
pub(crate) fn progress(name: &str, code: i32, took: Duration, (ended, of): (usize, usize)) -> String {
    let seconds = took.as_secs_f64();
    match code {
        0 => format!("[{ended}/{of}] {name}: done in {seconds:.1} s"),
        3 => format!("[{ended}/{of}] {name}: done in {seconds:.1} s, with findings"),
        _ => format!("[{ended}/{of}] {name}: failed after {seconds:.1} s"),
    }
}

/// The hosts that the options and the arguments name, each once. A name without a user gets the inventory's.
pub(crate) fn hosts(session: &Session, options: &Options, arguments: &[Host]) -> anyhow::Result<Vec<Named>> {
    let misuse = |problem: String| anyhow!(Misuse(problem));
    let mut hosts = Vec::new();
    if let Some(group) = &options.hosts {
        let inventory = session.config()?.inventory;
        let is_list = group.contains(',') && group.split(',').all(|name| name.parse::<Host>().is_ok());
        let by_name = if is_list { format!("; machines are named by --host {group}") } else { String::new() };
        let group = inventory.group(group);
        let group = group.map_err(|problem| misuse(format!("--hosts: {problem}{by_name}")))?;
        for host in &group.hosts {
            hosts.push(Named { name: host.to_string(), host: inventory.with_user(host.clone()) });
        }
    }
    for name in &options.host {
        let host = name.parse().map_err(|problem| misuse(format!("--host: {problem}")))?;
        hosts.push(Named { name: name.clone(), host });
    }
    hosts.extend(arguments.iter().map(|host| Named { name: host.to_string(), host: host.clone() }));
    if hosts.iter().any(|named| named.host.user.is_none())
        && let Some(inventory) = may_read(session.config())?.map(|config| config.inventory)
    {
        hosts.iter_mut().for_each(|named| named.host = inventory.with_user(named.host.clone()));
    }
    let mut each_once: Vec<Named> = Vec::new();
    for named in hosts {
        if !each_once.iter().any(|known| known.host == named.host) {
            each_once.push(named);
        }
    }
    Ok(each_once)
}

/// `None` of a configuration that this user may not read. An invalid one is an error: if ssh tried another user than
/// `inventory.user`, a machine might lock the account.
fn may_read<T>(config: anyhow::Result<T>) -> anyhow::Result<Option<T>> {
    let is_denied = |error: &anyhow::Error| {
        error.chain().any(|cause| cause.downcast_ref().is_some_and(root::Error::is_denied))
    };
    match config {
        Ok(config) => Ok(Some(config)),
        Err(error) if is_denied(&error) => {
            tracing::info!("{error:#}; continuing without inventory.user");
            Ok(None)
        }
        Err(error) => {
            Err(error
                .context("cannot read inventory.user (write USER@HOST to log in without the configuration)"))
        }
    }
}
