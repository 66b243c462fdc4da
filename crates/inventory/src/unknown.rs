use serde::{Deserialize, Serialize};
use std::fmt;

/// A value, or why there is none.
pub type Reading<T> = Result<T, Unknown>;

/// Why a value is not known, in words for a person: absent, unsupported, unreadable, or not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknown {
    reason: String,
    cause: Cause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Cause {
    Absent,
    Hidden,
    Failed,
}

impl Unknown {
    /// The file or device is there but gave nothing that can be used. `reason`: a sentence that names the
    /// file.
    pub fn because(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), cause: Cause::Failed }
    }

    /// The file is not there, or its device went.
    pub fn absent(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), cause: Cause::Absent }
    }

    /// The kernel refused the read: KFD does for a GPU that the device cgroup hides.
    pub fn hidden(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), cause: Cause::Hidden }
    }

    /// Puts the reason into another sentence.
    #[must_use]
    pub fn within(self, sentence: impl FnOnce(&str) -> String) -> Self {
        Self { reason: sentence(&self.reason), ..self }
    }

    /// Whether nothing failed: the file is not there, or its device went.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.cause == Cause::Absent
    }

    /// Whether the file or device is there but gave nothing that can be used, so that the value stays open. A
    /// device that a cgroup hides is not such a case: the kernel has answered.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        self.cause == Cause::Failed
    }

    /// Whether KFD refused the read: it does for a GPU that the device cgroup hides.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.cause == Cause::Hidden
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}
