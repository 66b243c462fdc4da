//! The worker's command line, as far as it says again what the environment says: flags win over variables.

use std::path::PathBuf;

use crate::engines::options::Dashes;

/// What the command line says of what is set here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    pub runtime: Option<String>,
    pub tags: Vec<String>,
    pub containerd_config: Option<String>,
    pub containerd_bin: Option<String>,
    pub work_dir: Option<String>,
}

/// `ExecStart=`, read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// `None`: something that is not called concourse, a script perhaps, which starts one.
    pub(super) program: Option<PathBuf>,
    pub(super) flags: Flags,
}

/// Reads a command line; another command of Concourse than `worker` is the error.
pub(super) fn command(argv: &[String]) -> Result<Command, String> {
    let (program, arguments) =
        argv.split_first().map_or((None, argv), |(program, rest)| (Some(program), rest));
    let program = program.map(PathBuf::from).filter(|path| path.file_name() == Some("concourse".as_ref()));
    let subcommand = arguments.first().filter(|word| !word.starts_with('-'));
    if let Some(other) = subcommand.filter(|word| program.is_some() && *word != "worker") {
        return Err(other.clone());
    }
    let mut flags = Flags::default();
    let names = ["runtime", "tag", "containerd-config", "containerd-bin", "work-dir"];
    for (name, value) in Dashes::Two.said(arguments, &names) {
        let value = value.map(str::to_owned);
        match name {
            "runtime" => flags.runtime = value,
            "containerd-config" => flags.containerd_config = value,
            "containerd-bin" => flags.containerd_bin = value,
            "work-dir" => flags.work_dir = value,
            _ => flags.tags.extend(value),
        }
    }
    Ok(Command { program, flags })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Command, String> {
        command(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn flags_are_read_in_both_spellings_and_the_rest_is_passed_over() {
        let flags =
            read("/x/concourse worker --work-dir=/w --tag a --name n --tag=b --runtime containerd").unwrap();
        let expected = Flags {
            runtime: Some("containerd".into()),
            tags: vec!["a".into(), "b".into()],
            work_dir: Some("/w".into()),
            ..Flags::default()
        };
        assert_eq!(flags, Command { program: Some("/x/concourse".into()), flags: expected });
        let flags = read("concourse worker --containerd-bin /b --containerd-config").unwrap().flags;
        assert_eq!((flags.containerd_bin.as_deref(), flags.containerd_config), (Some("/b"), None));
    }

    #[test]
    fn what_is_no_worker_is_told_and_a_script_may_start_one() {
        assert_eq!(read("/x/concourse web"), Err("web".to_owned()));
        assert_eq!(read("/x/concourse quickstart --worker-work-dir /w"), Err("quickstart".to_owned()));
        for line in ["/usr/local/bin/start-worker web", ""] {
            assert_eq!(read(line), Ok(Command { program: None, flags: Flags::default() }), "{line}");
        }
    }
}
