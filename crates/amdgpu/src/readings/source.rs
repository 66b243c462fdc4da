//! Reads the files of one device and notes those that gave nothing.

use std::path::PathBuf;
use std::str::FromStr;

use inventory::readings::Fault;
use inventory::{Reading, Unknown};
use root::Root;

use crate::attribute;
use crate::gpu_metrics::GpuMetrics;

/// An attribute of sysfs is at most one page (fs/sysfs/file.c), and its first read gives all of it.
const PAGE: usize = 4096;

/// The files beneath a device's folder. A name is a path beneath that folder, or begins at the Root.
///
/// A file that is not there, or whose value the driver does not support, is no fault. Every other file that gives no value
/// is, and costs only that value.
pub(super) struct Source<'a> {
    root: &'a Root,
    folder: PathBuf,
    /// The device's metrics: `gpu_metrics` of a card, `xcp/xcp_metrics` of a partition.
    pub(super) metrics: &'static str,
    pub(super) faults: Vec<Fault>,
}

impl<'a> Source<'a> {
    pub(super) fn new(root: &'a Root, folder: PathBuf, metrics: &'static str) -> Self {
        Self { root, folder, metrics, faults: Vec::new() }
    }

    pub(super) fn fault(&mut self, name: &str, reason: Unknown) {
        self.faults.push(Fault { file: self.folder.join(name), reason });
    }

    /// The path that a person would type at a shell.
    pub(super) fn shown(&self, name: &str) -> PathBuf {
        self.root.shown(self.folder.join(name))
    }

    /// Whether the attribute exists; its file is not opened.
    pub(super) fn is_there(&self, name: &str) -> bool {
        self.root.is_there(self.folder.join(name))
    }

    /// Reads all of an attribute: one open, one read, one close.
    pub(super) fn bytes(&mut self, name: &str) -> Option<Vec<u8>> {
        let bytes = self.root.read_start(self.folder.join(name), PAGE + 1);
        let bytes = self.noted(name, bytes)?;
        if bytes.len() > PAGE {
            let shown = self.shown(name);
            let reason = format!("{} is larger than a page, and so no attribute of sysfs", shown.display());
            self.fault(name, Unknown::because(reason));
            return None;
        }
        Some(bytes)
    }

    /// Reads all of a binary attribute, which may be longer than a page and give less than asked for in each
    /// read.
    pub(super) fn long_bytes(&mut self, name: &str, limit: usize) -> Option<Vec<u8>> {
        let bytes = self.root.read(self.folder.join(name), limit);
        self.noted(name, bytes)
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        let bytes = self.bytes(name)?;
        let text = attribute::text_of(bytes, &self.shown(name));
        self.known(name, text)
    }

    /// `what`: what belongs there, for the fault.
    pub(super) fn parsed<T>(
        &mut self,
        name: &str,
        what: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(name)?;
        let value = parse(&text).ok_or_else(|| attribute::not_a(what, &text, &self.shown(name)));
        self.known(name, value)
    }

    /// Reads as [`Self::parsed`] does; with an empty line the driver says that it has no value (amdgpu_pm.c).
    pub(super) fn parsed_or_empty<T>(
        &mut self,
        name: &str,
        what: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let bytes = self.bytes(name)?;
        if bytes == b"\n" {
            return None;
        }
        let shown = self.shown(name);
        let value = attribute::text_of(bytes, &shown)
            .and_then(|text| parse(&text).ok_or_else(|| attribute::not_a(what, &text, &shown)));
        self.known(name, value)
    }

    pub(super) fn number<T: FromStr>(&mut self, name: &str) -> Option<T> {
        self.parsed(name, "number", |text| text.parse().ok())
    }

    /// A decimal number of units of which `per_unit` make a base unit: 1e6 for microwatts.
    pub(super) fn scaled(&mut self, name: &str, per_unit: f64) -> Option<f64> {
        self.number::<u64>(name).map(|value| value as f64 / per_unit)
    }

    pub(super) fn percent(&mut self, name: &str) -> Option<f64> {
        self.parsed(name, "percentage", |text| text.parse().ok().filter(|percent: &u8| *percent <= 100))
            .map(f64::from)
    }

    /// The names in a folder, in order; none where there is no such folder.
    pub(super) fn names(&mut self, name: &str) -> Vec<String> {
        let names = self.root.list(self.folder.join(name));
        let names = self.noted(name, names).unwrap_or_default();
        names.into_iter().filter_map(|name| name.into_string().ok()).collect()
    }

    pub(super) fn metrics(&mut self, decode: fn(&[u8]) -> Reading<GpuMetrics>) -> Option<GpuMetrics> {
        let bytes = self.bytes(self.metrics)?;
        self.known(self.metrics, decode(&bytes))
    }

    /// The value, or its absence with a fault.
    pub(super) fn known<T>(&mut self, name: &str, value: Reading<T>) -> Option<T> {
        value.map_err(|reason| self.fault(name, reason)).ok()
    }

    fn noted<T>(&mut self, name: &str, read: Result<T, root::Error>) -> Option<T> {
        let is_absent = |error: &root::Error| {
            error.is_not_found()
                || error.is_unsupported()
                // amdgpu_ras.c answers so where a block has no counters to read.
                || (error.is_invalid() && name.starts_with("ras/"))
        };
        match read {
            Ok(value) => Some(value),
            Err(error) if is_absent(&error) => None,
            Err(error) => {
                self.fault(name, attribute::failed(&error));
                None
            }
        }
    }
}
