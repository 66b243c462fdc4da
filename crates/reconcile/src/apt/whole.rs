//! dpkg's runs that were killed or failed: they come to their end by dpkg's and apt's own means, before anything else.

use std::collections::BTreeSet;

use root::Root;

use super::dpkg::{self, Database, Status};
use super::{PackageManager, Step};

impl PackageManager {
    /// Waits for other runs of apt or dpkg, then completes what a killed run has begun. Does nothing where
    /// dpkg's database has nothing half done, unless `wait`: an apt that a killed run left may not have come
    /// to dpkg yet.
    ///
    /// `managed`: packages that apt may install with it.
    ///
    /// # Errors
    /// A sentence on what is still half done, and why. Later steps may succeed all the same.
    pub(crate) fn make_whole(
        &self,
        root: &Root,
        wait: bool,
        managed: &BTreeSet<String>,
        hear: &mut dyn FnMut(Step),
    ) -> Result<(), String> {
        let database = || Database::read(root).map_err(|error: dpkg::Error| error.to_string());
        if !wait && !database()?.is_interrupted() {
            return Ok(());
        }
        // `apt-get check` takes dpkg's lock, and waits for it; what it then says of a run that was killed is put right
        // here.
        self.apt_get(&["check"], &mut |_| {}).ok();
        if !database()?.is_interrupted() {
            return Ok(());
        }
        let configured = self
            .run(&["dpkg", "--force-confdef", "--force-confold", "--configure", "--pending"], hear)
            .map(drop);
        let left = database()?.half_done();
        // A package that is unpacked in part must be fetched again, and its dependencies may be missing.
        let needs_apt =
            |(_, status): &&(String, Status)| matches!(status, Status::HalfInstalled | Status::Unpacked);
        if !left.iter().any(|it| needs_apt(&it)) {
            return if left.is_empty() { Ok(()) } else { configured };
        }
        let half: Vec<&str> = left.iter().map(|(name, _)| name.as_str()).collect();
        // dpkg neither configures nor removes a package that is half installed: the package must be unpacked
        // anew first.
        let is_anew = |(_, status): &&(String, Status)| *status == Status::HalfInstalled;
        let anew: Vec<&str> = left.iter().filter(is_anew).map(|(name, _)| name.as_str()).collect();
        let command = match anew.as_slice() {
            [] => vec!["--fix-broken", "install"],
            anew => [&["--reinstall", "install"], anew].concat(),
        };
        let simulated = self.simulate(&command)?;
        // Whoever unpacked an unmanaged package has to add its dependencies.
        let is_asked = |name: &&str| managed.contains(*name) || half.contains(name);
        let comes = simulated.comes.iter().map(|(name, _)| name.as_str()).filter(|name| !is_asked(name));
        let is_others = |(name, old, new): &&(String, String, String)| {
            !half.contains(&name.as_str()) || old != new && !managed.contains(name)
        };
        let replaced = simulated.replaced.iter().filter(is_others).map(|(name, ..)| name.as_str());
        // No package is removed, not even one that is half done: whoever began with it has to decide.
        let goes = simulated.goes.iter().map(String::as_str);
        let others: BTreeSet<&str> = replaced.chain(comes).chain(goes).collect();
        if !others.is_empty() {
            return Err(format!(
                "{} is half installed, and to put that right apt would change or install {}, which is not configured: run \
                 apt-get {} if you agree",
                half.join(", "),
                others.into_iter().collect::<Vec<_>>().join(", "),
                command.join(" ")
            ));
        }
        self.execute(&command, hear)?;
        if database()?.is_interrupted() { configured } else { Ok(()) }
    }
}
