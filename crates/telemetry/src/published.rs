use inventory::published::{FRESH_S, PATH, Published, SCHEMA_VERSION};

use crate::daemon_file::DaemonFile;

impl DaemonFile for Published {
    const PATH: &'static str = PATH;
    const NAME: &'static str = "file of the daemon";
    const SCHEMA_VERSION: u32 = SCHEMA_VERSION;
    const FRESH_S: u64 = FRESH_S;

    fn written_at(&self) -> u64 {
        self.written_at
    }
}
