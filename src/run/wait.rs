use reconcile::command::Programs;
use reconcile::{Outcome, Restarts, Services, Settled, Store, Transaction};
use root::Root;

use super::Error;

/// Waits for a unit that ends once its work is done, for hours if need be, and starts it again. This is what
/// a unit of its own runs when an apply or undo could not wait any longer; it changes nothing else.
///
/// # Errors
/// When systemd does not tell of the unit, or the receipt cannot be read or kept. The answer has what came of the start.
pub fn wait_and_start(root: &Root, programs: &Programs, unit: &str) -> Result<Vec<Settled>, Error> {
    let services = Services {
        programs: Some(programs),
        restarts: Restarts::Never,
        drain: std::time::Duration::ZERO,
        waiter: None,
        proxy: None,
    };
    loop {
        // Without the lock, which is free for every apply meanwhile.
        let receipt = Store::new(root).receipt()?;
        let waited = services.wait_for_end(&receipt, unit);
        let unknown = |reason| Error::Refused(format!("cannot wait for {unit}: {reason}"));
        let Some(effect) = waited.map_err(unknown)? else { return Ok(Vec::new()) };
        let settled = Transaction::begin(root, &mut |_| {})?.run_effects(
            root,
            &services,
            |pending| *pending == effect,
            &mut |_| {},
        )?;
        if settled.iter().all(|it| it.outcome != Outcome::Pending) {
            return Ok(settled);
        }
    }
}
