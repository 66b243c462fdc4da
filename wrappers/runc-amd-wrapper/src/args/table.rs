//! runc's flags: the ones of runc 1.1 as Debian 12 has it, and those that came later, up to 1.3.
//!
//! Only what decides how a command line is read: a flag's names, without dashes, and whether it takes a value. runc
//! refuses a line that uses two names of one flag.

/// The flags of a line, each with all its names.
#[derive(Debug)]
pub(super) struct Flags {
    /// `--flag VALUE` or `--flag=VALUE`.
    pub(super) values: &'static [&'static str],
    /// `--flag`, or `--flag=true`; never the next argument.
    pub(super) switches: &'static [&'static str],
}

/// The line that follows a subcommand which the wrapper has to understand.
#[derive(Debug)]
pub(super) struct Grammar {
    pub(super) flags: Flags,
    /// Whether a command follows the id, as with `exec`. Without one runc wants the id alone, and moves flags
    /// from behind the id in front of it.
    pub(super) has_command: bool,
}

pub(super) static GLOBAL: Flags = Flags {
    values: &["log", "log-format", "root", "criu", "rootless"],
    switches: &["debug", "systemd-cgroup", "help h", "version v"],
};

pub(super) static CREATE: Grammar = Grammar {
    flags: Flags {
        values: &["bundle b", "console-socket", "pidfd-socket", "pid-file", "preserve-fds"],
        switches: &["no-pivot", "no-new-keyring", "help h"],
    },
    has_command: false,
};

pub(super) static RUN: Grammar = Grammar {
    flags: Flags {
        values: &["bundle b", "console-socket", "pidfd-socket", "pid-file", "preserve-fds"],
        switches: &["detach d", "keep", "no-subreaper", "no-pivot", "no-new-keyring", "help h"],
    },
    has_command: false,
};

pub(super) static EXEC: Grammar = Grammar {
    flags: Flags {
        values: &[
            "console-socket",
            "pidfd-socket",
            "cwd",
            "env e",
            "user u",
            "additional-gids g",
            "process p",
            "pid-file",
            "process-label",
            "apparmor",
            "cap c",
            "preserve-fds",
            "cgroup",
        ],
        switches: &["tty t", "detach d", "no-new-privs", "ignore-paused", "help h"],
    },
    has_command: true,
};

pub(super) static DELETE: Grammar =
    Grammar { flags: Flags { values: &[], switches: &["force f", "help h"] }, has_command: false };

/// The subcommands that the wrapper has no part in.
pub(super) static OTHERS: &[&str] = &[
    "checkpoint",
    "events",
    "features",
    "init",
    "kill",
    "list",
    "pause",
    "ps",
    "restore",
    "resume",
    "spec",
    "start",
    "state",
    "update",
    "help",
    "h",
];
