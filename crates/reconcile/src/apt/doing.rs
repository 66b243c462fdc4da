//! Packages that come and go, each first in apt's own simulation.

use super::Step;
use super::{AS_IT_STANDS, PackageManager, SIMULATED, Simulated};

impl PackageManager {
    /// What apt would do. Takes no lock and changes nothing.
    pub(super) fn simulate(&self, command: &[&str]) -> Result<Simulated, String> {
        let said = self.apt_get(&[&SIMULATED[..], command].concat(), &mut |_| {})?;
        Ok(Simulated::parse(&said))
    }

    /// What would come with a package. `anew`: as in [`PackageManager::install`].
    pub(crate) fn simulate_install(
        &self,
        name: &str,
        version: Option<&str>,
        anew: bool,
    ) -> Result<Simulated, String> {
        self.simulate(&[install(anew), &[&wanted(name, version)]].concat())
    }

    /// What would go with packages.
    pub(crate) fn simulate_remove(&self, names: &[String]) -> Result<Simulated, String> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.simulate(&[&["remove"], names.as_slice()].concat())
    }

    /// Installs a package and what it needs. What was simulated is held to: apt ends with an error before it removes
    /// anything. `anew`: one that dpkg calls half installed, which apt takes for the newest already and leaves as it is
    /// unless it is told to put it there once more.
    pub(crate) fn install(
        &self,
        name: &str,
        version: Option<&str>,
        anew: bool,
        hear: &mut dyn FnMut(Step),
    ) -> Result<(), String> {
        let wanted = wanted(name, version);
        self.apt_get(&[&["--no-remove"], install(anew), &[&wanted]].concat(), hear).map(drop)
    }

    /// Removes packages; `purge`: with their configuration.
    pub(crate) fn remove(
        &self,
        names: &[String],
        purge: bool,
        hear: &mut dyn FnMut(Step),
    ) -> Result<(), String> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let command = if purge { "purge" } else { "remove" };
        self.apt_get(&[&[command], names.as_slice()].concat(), hear).map(drop)
    }

    /// The same by dpkg alone, which takes no more than it is told: for a machine on which apt does nothing before
    /// something else is put right.
    pub(crate) fn remove_by_dpkg(
        &self,
        names: &[String],
        purge: bool,
        hear: &mut dyn FnMut(Step),
    ) -> Result<(), String> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let command = if purge { "--purge" } else { "--remove" };
        // A package of which a run was killed while it was unpacked; it is to go, and need not come first.
        let argv = [&["dpkg", "--force-remove-reinstreq", command], names.as_slice()].concat();
        self.run(&argv, hear).map(drop)
    }

    /// Tells dpkg that packages are to be there (`dpkg --set-selections`, which apt-mark calls): no installation of one
    /// that is there does.
    pub(crate) fn select(&self, names: &[&str]) -> Result<(), String> {
        self.apt_mark("install", names)
    }

    /// Notes that packages came for the sake of others, as apt notes it of those that it installs by itself.
    pub(crate) fn mark_automatic(&self, names: &[&str]) -> Result<(), String> {
        self.apt_mark("auto", names)
    }

    fn apt_mark(&self, mark: &str, names: &[&str]) -> Result<(), String> {
        if names.is_empty() {
            return Ok(());
        }
        self.run(&[&["apt-mark"], &AS_IT_STANDS[..], &[mark], names].concat(), &mut |_| {}).map(drop)
    }
}

impl Simulated {
    /// What changes beside these, without what is new.
    pub(crate) fn others(&self, asked: &[&str]) -> Vec<&str> {
        let replaced = self.replaced.iter().map(|(name, ..)| name.as_str());
        let changed = replaced.chain(self.goes.iter().map(String::as_str));
        changed.filter(|name| !asked.contains(name)).collect()
    }
}

fn install(anew: bool) -> &'static [&'static str] {
    if anew { &["--reinstall", "install"] } else { &["install"] }
}

pub(crate) fn wanted(name: &str, version: Option<&str>) -> String {
    version.map_or_else(|| name.to_owned(), |version| format!("{name}={version}"))
}
