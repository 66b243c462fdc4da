use std::collections::BTreeSet;

use allocation::bundle::{Bundle, Injection, Node, ProcessEdits};
use allocation::cdi::Outline;
use allocation::gids::supplement;
use allocation::policy::{Ask, Policy, Setting};
use allocation::request::Request;
use allocation::selection::Inventory;
use anyhow::{Context, bail};
use root::{Kind, Root};

/// A task's config.json as Concourse writes it, shortened: it asks for one GPU, in Concourse's user namespace.
pub const TASK: &str = include_str!("../../templates/demo/task.json");

/// Honours every request, as a machine's administrator may choose.
const POLICY: &str = r#"{"schema_version":1,"requests":"all","default":"none","sharing":"shared"}"#;

/// What the wrapper makes of a bundle on the machine beneath `root`: by the wrapper's own decisions and edits, with
/// the nodes that the Root has, recorded ones too. `None` when it changes nothing.
///
/// # Errors
/// What the wrapper would say, too.
pub fn wrapped(root: &Root, spec: &str, bundle: &str) -> anyhow::Result<Option<String>> {
    let policy = Policy::parse(POLICY).context("the demo's policy")?;
    let outline = Outline::parse(spec)?;
    let bundle = Bundle::parse(bundle)?;
    let request = Request::from_env(bundle.env())?;
    let Ask::Explicit(request) = policy.ask(request.as_ref(), Setting::default())? else { return Ok(None) };
    let inventory = Inventory::new(&policy, &outline);
    let chosen = inventory.select(request, |_| 0)?;
    let spec = outline.only(chosen.iter().map(|chosen| chosen.device))?;
    let grant = spec.grant(0..spec.devices.len())?;
    let namespace = bundle.user_namespace()?;
    let mut gids = BTreeSet::new();
    let mut nodes = Vec::new();
    for wanted in grant.nodes {
        let meta = root.stat(wanted.host())?;
        let Kind::Character { major, minor } = meta.kind else { bail!("{} is no device", wanted.host()) };
        if let Some(gid) = supplement(meta.mode, meta.gid, &namespace)? {
            gids.insert(gid);
        }
        nodes.push(Node {
            path: &wanted.path,
            major: u32::try_from(major)?,
            minor: u32::try_from(minor)?,
            file_mode: wanted.file_mode.unwrap_or(meta.mode),
            uid: namespace.uid(meta.uid),
            gid: namespace.gid(meta.gid),
            access: wanted.access(),
        });
    }
    let process = ProcessEdits { gids: gids.into_iter().collect(), ..ProcessEdits::default() };
    let injection = Injection { nodes, process, ..Injection::default() };
    Ok(bundle.inject(&injection)?)
}
