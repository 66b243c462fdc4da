//! The output of a program.

use std::process::{ExitStatus, Output};

/// Both streams of a program, and its exit status.
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
    /// The stdout of a program that ended with 0.
    ///
    /// # Panics
    /// With both streams, when the program failed.
    #[track_caller]
    pub fn well(self) -> String {
        assert!(self.status.success(), "{}\nstdout: {}\nstderr: {}", self.status, self.stdout, self.stderr);
        self.stdout
    }

    /// The stderr of a program that ended with a code other than 0.
    ///
    /// # Panics
    /// With both streams, when the program ended with 0 or was killed.
    #[track_caller]
    pub fn badly(self) -> String {
        let failed = self.status.code().is_some_and(|code| code != 0);
        assert!(failed, "{}\nstdout: {}\nstderr: {}", self.status, self.stdout, self.stderr);
        self.stderr
    }
}
