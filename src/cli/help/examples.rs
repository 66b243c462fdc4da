//! The examples at the end of each command's `--help` and of its manual page.

/// Examples of each command, with what each does. A test parses them.
pub(super) const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "detect",
        &[
            ("rocworker detect", "this machine's GPUs"),
            ("rocworker detect -o wide", "every column, names in full"),
            ("rocworker --host gpu1,gpu2 detect", "two other machines, over ssh"),
        ],
    ),
    (
        "doctor",
        &[
            ("rocworker doctor", "every check, and a remedy where one fails"),
            ("sudo rocworker doctor --canary", "also start a container through each engine"),
        ],
    ),
    (
        "partition show",
        &[
            ("rocworker partition show", "each card's modes, and others"),
            ("rocworker --host gpu1 partition show", "another machine's"),
        ],
    ),
    (
        "partition set",
        &[
            ("sudo rocworker partition set inference", "switch cards that no process is on"),
            ("sudo rocworker partition set quarters --reload", "also another memory mode"),
        ],
    ),
    ("partition devices", &[("rocworker partition devices", "each with its node and memory")]),
    ("partition env", &[("rocworker partition env 3", "a program's variables")]),
    (
        "partition fit",
        &[
            ("rocworker partition fit config.json --partition 0", "by a model's own config.json"),
            ("rocworker partition fit x --partition 0 --parameters 8B", "by its number of weights"),
        ],
    ),
    ("partition reset", &[("sudo rocworker partition reset", "the modes of before")]),
    ("partition plan", &[("rocworker partition plan inference", "the steps to a profile of config.yaml")]),
    (
        "plan",
        &[
            ("rocworker plan", "what apply would change"),
            ("rocworker plan --exit-code", "end with 3 where something is to change"),
            ("rocworker plan --save plan.json", "keep the plan for apply"),
        ],
    ),
    (
        "apply",
        &[
            ("sudo rocworker apply", "set this machine up"),
            ("sudo rocworker apply plan.json", "do what a saved plan says, or nothing"),
            ("sudo rocworker apply --only exporter", "only serve metrics"),
        ],
    ),
    (
        "status",
        &[
            ("rocworker status", "what is managed, and what differs"),
            ("rocworker status --json", "for a program"),
        ],
    ),
    (
        "undo",
        &[
            ("rocworker undo --dry-run", "what undo would revert"),
            ("sudo rocworker undo", "restore the machine"),
        ],
    ),
    ("history", &[("rocworker history", "who changed what, and when")]),
    (
        "config validate",
        &[
            ("rocworker config validate", "the configuration of this machine"),
            ("rocworker config validate new.yaml", "a file that is to become it"),
        ],
    ),
    (
        "cdi generate",
        &[
            ("sudo rocworker cdi generate", "write the spec, and nothing else: enough for podman"),
            ("rocworker cdi generate --file -", "print it"),
        ],
    ),
    ("cdi list", &[("rocworker cdi list", "the names for podman run --device amd.com/gpu=NAME")]),
    ("cdi validate", &[("rocworker cdi validate", "end with 3 where the spec is not true of the machine")]),
    ("serve", &[("sudo rocworker serve", "run the daemon here, as rocworker.service does")]),
    (
        "report",
        &[
            ("sudo rocworker report", "a bundle in this folder"),
            ("rocworker --host gpu1 report --file -", "another machine's, to stdout"),
        ],
    ),
    (
        "metrics",
        &[
            ("rocworker metrics", "Prometheus' text"),
            ("rocworker metrics --format openmetrics", "OpenMetrics"),
        ],
    ),
    (
        "health",
        &[
            ("rocworker health", "end with 3 where a GPU is unhealthy"),
            ("rocworker health --rules rules.toml", "judge by other rules"),
        ],
    ),
    (
        "top",
        &[
            ("rocworker top", "until q"),
            ("rocworker top --once", "print one view"),
            ("rocworker --host gpu1 top", "another machine's"),
        ],
    ),
    (
        "topology",
        &[
            ("rocworker topology", "links between each two GPUs"),
            ("rocworker topology --tree", "by NUMA node and bridge"),
        ],
    ),
    (
        "labels",
        &[
            ("rocworker labels", "a line a label"),
            ("rocworker labels -o json", "a merge patch of the node"),
            ("rocworker labels -o nfd", "a feature file of NFD's"),
        ],
    ),
    (
        "explain",
        &[
            ("rocworker explain hip:719", "an error's number"),
            ("sudo rocworker explain --journal --since yesterday", "what the kernel says of GPUs"),
            ("rocworker explain - < kern.log", "another machine's log"),
        ],
    ),
    ("list-errors", &[("rocworker list-errors", "the errors that explain knows by number")]),
    ("lease list", &[("rocworker lease list", "who holds each GPU, and which creates wait")]),
    ("lease release", &[("sudo rocworker lease release renderD128", "free a GPU whose container has ended")]),
    ("lease cancel", &[("sudo rocworker lease cancel 4f1c2a", "end a create that waits")]),
    ("lxd advise", &[("rocworker lxd advise --container c1", "the commands for the container c1")]),
    (
        "tags",
        &[
            ("rocworker tags", "the worker's tags"),
            ("rocworker tags --env", "as a line of an environment file"),
        ],
    ),
    ("task-check", &[("rocworker task-check", "in a task: end with 3 where it cannot use a GPU")]),
    ("demo", &[("rocworker demo", "needs no GPU and no rights")]),
    (
        "remote install",
        &[
            ("rocworker remote install gpu1 root@gpu2", "serve metrics on two machines"),
            ("rocworker remote install --group mi300", "on a group of the inventory"),
        ],
    ),
    ("remote check", &[("rocworker remote check gpu1", "end with 3 where the exporter has a problem")]),
    ("remote uninstall", &[("rocworker remote uninstall gpu1", "restore what was there before")]),
    (
        "completions",
        &[("rocworker completions bash", "for ~/.local/share/bash-completion/completions/rocworker")],
    ),
    (
        "man",
        &[
            ("rocworker man", "print one page of all commands"),
            ("rocworker man --into man8", "a page of each command"),
        ],
    ),
];

/// The examples of a command and of those beneath it, such as `cdi`: a line each.
pub(crate) fn examples(path: &str) -> Option<String> {
    let within = format!("{path} ");
    let of: Vec<_> = EXAMPLES.iter().filter(|(of, _)| *of == path || of.starts_with(&within)).collect();
    let lines = || of.iter().flat_map(|(_, lines)| lines.iter());
    let width = lines().map(|(line, _)| line.len()).max()?;
    Some(lines().map(|(line, about)| format!("  {line:width$}  {about}")).collect::<Vec<_>>().join("\n"))
}
