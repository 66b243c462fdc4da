//! The program `rocworker-exporter`: GET /metrics, a page at /, and nothing that changes the machine.

mod args;
mod connections;
mod page;
mod reported;
mod routes;
mod scraper;
mod server;
mod web_config;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;
use root::Root;
use tokio::signal::unix::{SignalKind, signal};

use args::Args;
use scraper::Scraper;
use server::Server;
use web_config::WebConfig;

/// musl's own allocator maps and unmaps a page for most requests: 440 system calls of a scrape of 64 partitions.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let wanted = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            error.print().ok();
            return ExitCode::from(if wanted { 0 } else { 2 });
        }
    };
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::from(if matches!(error, Error::WebConfig(_) | Error::Root(_)) { 2 } else { 1 })
        }
    }
}

/// Why the program cannot start.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Root(#[from] root::Error),
    #[error(transparent)]
    WebConfig(#[from] web_config::Error),
    #[error(transparent)]
    Listen(#[from] server::Error),
    #[error("cannot start: {0}")]
    Start(#[from] std::io::Error),
}

/// A line for the journal.
fn say(line: &str) {
    let line = line.replace(|c: char| c.is_control(), " ");
    writeln!(std::io::stderr(), "rocworker-exporter: {line}").ok();
}

fn run(args: Args) -> Result<(), Error> {
    // A mistake in --root is an answer now, not at each scrape.
    drop(Root::open(&args.root)?);
    let web_config = args.web_config.as_deref().map(WebConfig::load).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Blocking threads compare passwords, for 100 ms of a CPU each.
        .max_blocking_threads(2)
        .build()?;
    let ended = tokio::task::LocalSet::new().block_on(&runtime, async {
        let mut terminated = signal(SignalKind::terminate())?;
        let mut interrupted = signal(SignalKind::interrupt())?;
        let listeners = server::listen(&args.listen).await?;
        let scraper = Scraper::start(args.root.clone(), args.pcie_bw)?;
        for listener in &listeners {
            let scheme = if web_config.as_ref().is_some_and(WebConfig::has_tls) { "https" } else { "http" };
            say(&format!(
                "{scheme}://{}/metrics answers for the machine at {}",
                listener.local_addr()?,
                args.root.display()
            ));
        }
        sd_notify::notify(&[sd_notify::NotifyState::Ready])?;
        let server = Server::new(scraper, web_config);
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
            () = server.serve(listeners) => {}
        }
        Ok(())
    });
    // The program must not wait for a thread whose read hangs.
    runtime.shutdown_background();
    ended
}
