//! What a program said.

use std::process::{ExitStatus, Output};

/// Both streams and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { status: output.status, stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }
}

impl Said {
    /// What stood on stdout, of a program that ended well.
    ///
    /// # Panics
    /// With both streams, when it did not.
    #[track_caller]
    pub fn well(self) -> String {
        assert!(self.status.success(), "{}\nstdout: {}\nstderr: {}", self.status, self.stdout, self.stderr);
        self.stdout
    }

    /// What stood on stderr, of a program that ended with another code than 0.
    ///
    /// # Panics
    /// With both streams, when it ended well or was killed.
    #[track_caller]
    pub fn badly(self) -> String {
        let failed = self.status.code().is_some_and(|code| code != 0);
        assert!(failed, "{}\nstdout: {}\nstderr: {}", self.status, self.stdout, self.stderr);
        self.stderr
    }
}
