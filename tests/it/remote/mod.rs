//! `rocworker remote` with a real ssh, a real systemd and dpkg: what it brings to a machine, and what it leaves there.

mod asker;
mod bare;
mod before;
mod broken;
mod foreign;
mod killed;
