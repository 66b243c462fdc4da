//! A program that runs apt by itself: what apt would do for it is simulated first, and held to.

use super::{PackageManager, Simulated, Step};

/// For every run: nobody's packages go, nobody is asked, and what dpkg prints is no terminal's.
const CONFIGURATION: &str = "APT::Get::Remove \"false\";\nAPT::Get::AutomaticRemove \"false\";\n\
    APT::Keep-Downloaded-Packages \"false\";\nDpkg::Use-Pty \"false\";\n\
    Dpkg::Options { \"--force-confdef\"; \"--force-confold\"; };\nDir::Cache::pkgcache \"\";\n";

/// Beside these for a run that only tells what it would do.
const SIMULATION: &str = "APT::Get::Simulate \"true\";\nDir::Log::Planner \"/dev/null\";\n";

impl PackageManager {
    /// What `APT_CONFIG` tells apt (apt.conf(5)). `simulated`: that it is to change nothing.
    pub(crate) fn configuration(&self, simulated: bool) -> String {
        let mut text = format!("{CONFIGURATION}DPkg::Lock::Timeout \"{}\";\n", self.lock.as_secs());
        for (key, value) in self.proxy.iter().filter_map(|option| option.split_once('=')) {
            text.push_str(&format!("{key} \"{value}\";\n"));
        }
        if simulated {
            text.push_str(SIMULATION);
        }
        text
    }

    /// What apt would do for a program, with a configuration that keeps it from changing anything.
    pub(crate) fn simulate_program(&self, argv: &[String], configuration: &str) -> Result<Simulated, String> {
        self.program(argv, configuration, &mut |_| {}).map(|said| Simulated::parse(&said))
    }

    /// Runs a program that runs apt.
    pub(crate) fn program(
        &self,
        argv: &[String],
        configuration: &str,
        hear: &mut dyn FnMut(Step),
    ) -> Result<String, String> {
        let programs = self.programs.with_environment(&[("APT_CONFIG", configuration)]);
        let manager = Self { programs, ..self.clone() };
        // It ends with whoever waits for it, and calls apt no more; an apt that runs comes to its own end.
        let start = ["setpriv", "--pdeathsig", "KILL"];
        let argv: Vec<&str> = start.into_iter().chain(argv.iter().map(String::as_str)).collect();
        manager.run(&argv, hear)
    }
}
