use inventory::published::{FRESH_S, PATH, Published};

use crate::daemon_file::DaemonFile;

impl DaemonFile for Published {
    const PATH: &'static str = PATH;
    const FRESH_S: u64 = FRESH_S;

    fn written_at(&self) -> u64 {
        self.written_at
    }
}
