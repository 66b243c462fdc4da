//! runc's flags: the ones of runc 1.1 as Debian 12 has it, and those that came later, up to 1.3.
//!
//! Only what decides how a command line is read: a flag's names, and whether it takes a value.

/// How a flag is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// `--flag VALUE` or `--flag=VALUE`.
    Value,
    /// `--flag`, or `--flag=true`; never the next argument.
    Nothing,
}

/// One flag under all its names, without dashes. runc refuses a line that uses two names of one flag.
#[derive(Debug)]
pub(super) struct Flag {
    pub(super) names: &'static [&'static str],
    pub(super) takes: Takes,
}

/// How many operands a subcommand wants; with any other number runc refuses the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operands {
    One,
    OneOrMore,
}

/// The line that follows a subcommand which the wrapper has to understand.
#[derive(Debug)]
pub(super) struct Grammar {
    pub(super) flags: &'static [Flag],
    pub(super) operands: Operands,
    /// runc moves flags that stand behind the id in front of it, except for `exec`.
    pub(super) reorders: bool,
}

const fn value(names: &'static [&'static str]) -> Flag {
    Flag { names, takes: Takes::Value }
}

const fn switch(names: &'static [&'static str]) -> Flag {
    Flag { names, takes: Takes::Nothing }
}

pub(super) static GLOBAL: &[Flag] = &[
    switch(&["debug"]),
    value(&["log"]),
    value(&["log-format"]),
    value(&["root"]),
    value(&["criu"]),
    switch(&["systemd-cgroup"]),
    value(&["rootless"]),
    switch(&["help", "h"]),
    switch(&["version", "v"]),
];

pub(super) static CREATE: Grammar = Grammar {
    flags: &[
        value(&["bundle", "b"]),
        value(&["console-socket"]),
        value(&["pidfd-socket"]),
        value(&["pid-file"]),
        switch(&["no-pivot"]),
        switch(&["no-new-keyring"]),
        value(&["preserve-fds"]),
        switch(&["help", "h"]),
    ],
    operands: Operands::One,
    reorders: true,
};

pub(super) static RUN: Grammar = Grammar {
    flags: &[
        value(&["bundle", "b"]),
        value(&["console-socket"]),
        value(&["pidfd-socket"]),
        switch(&["detach", "d"]),
        switch(&["keep"]),
        value(&["pid-file"]),
        switch(&["no-subreaper"]),
        switch(&["no-pivot"]),
        switch(&["no-new-keyring"]),
        value(&["preserve-fds"]),
        switch(&["help", "h"]),
    ],
    operands: Operands::One,
    reorders: true,
};

pub(super) static EXEC: Grammar = Grammar {
    flags: &[
        value(&["console-socket"]),
        value(&["pidfd-socket"]),
        value(&["cwd"]),
        value(&["env", "e"]),
        switch(&["tty", "t"]),
        value(&["user", "u"]),
        value(&["additional-gids", "g"]),
        value(&["process", "p"]),
        switch(&["detach", "d"]),
        value(&["pid-file"]),
        value(&["process-label"]),
        value(&["apparmor"]),
        switch(&["no-new-privs"]),
        value(&["cap", "c"]),
        value(&["preserve-fds"]),
        value(&["cgroup"]),
        switch(&["ignore-paused"]),
        switch(&["help", "h"]),
    ],
    operands: Operands::OneOrMore,
    reorders: false,
};

pub(super) static DELETE: Grammar = Grammar {
    flags: &[switch(&["force", "f"]), switch(&["help", "h"])],
    operands: Operands::One,
    reorders: true,
};

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
