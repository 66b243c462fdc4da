//! A spec, read only as far as the choice of devices needs it.
//!
//! The wrapper gives a container few of the devices that a spec has under three names each: it reads the edits
//! of those alone. [`Spec`] is the whole of a spec, for whoever has to judge it.

use std::borrow::Cow;

use rustc_hash::{FxBuildHasher, FxHashSet};

use super::{Device, Edits, Fault, KIND, Spec, read};
use crate::{
    Error, Quoted, Render,
    json::{self, Scanner, Span, keyed, object, whole},
    path::clean,
};

/// The names of a spec, each with its render nodes.
#[derive(Clone, Debug, Default)]
pub struct Outline<'a> {
    text: &'a str,
    /// All but its devices and edits.
    spec: Spec<'a>,
    devices: Vec<Named<'a>>,
    edits: Option<Span>,
}

/// A device by its name.
#[derive(Clone, Debug)]
struct Named<'a> {
    name: Cow<'a, str>,
    renders: Vec<Render>,
    /// The path of a render node that the wrapper does not know by this spelling.
    misspelt: Option<Cow<'a, str>>,
    whole: Span,
}

keyed!(Outline<'a>, required [], |outline, scanner| {
    "cdiVersion" => outline.spec.version = scanner.text()?,
    "kind" => outline.spec.kind = scanner.text()?,
    "annotations" => outline.spec.annotated = read::annotated(scanner)?,
    "devices" => outline.devices = scanner.list(device)?,
    "containerEdits" => outline.edits = scanner.optional(|scanner| {
        Ok(scanner.object_of(|scanner, _| scanner.skip().map(drop))?.span)
    })?,
}, |outline, key| read::note(&mut outline.spec.unknown, key));

/// Goes past a device.
fn device<'a>(scanner: &mut Scanner<'a>) -> Result<Named<'a>, json::Fault> {
    let (mut renders, mut misspelt) = (Vec::new(), None);
    let mut name = Cow::default();
    let object = scanner.object_of(|scanner, key| {
        if key.is("name") {
            scanner.text().map(|text| name = text)
        } else if key.is("containerEdits") {
            let edits = scanner.object_of(|scanner, key| {
                if !key.is("deviceNodes") {
                    return scanner.skip().map(drop);
                }
                scanner.each(|scanner| {
                    let path = node(scanner)?;
                    match Render::parse(&path) {
                        Some(render) => renders.push(render),
                        None if is_misspelt(&path) => misspelt = Some(path),
                        None => {}
                    }
                    Ok(())
                })
            });
            edits.map(drop)
        } else {
            scanner.skip().map(drop)
        }
    })?;
    Ok(Named { name, renders, misspelt, whole: object.span })
}

/// Goes past a device node, and gives its path on the host.
fn node<'a>(scanner: &mut Scanner<'a>) -> Result<Cow<'a, str>, json::Fault> {
    if let Some(line) = scanner.by_text(read::in_one_line) {
        return Ok(line.path.into());
    }
    let (mut path, mut host) = (Cow::default(), Cow::default());
    scanner.object_of(|scanner, key| {
        if key.is("path") {
            scanner.text().map(|text| path = text)
        } else if key.is("hostPath") {
            scanner.optional(Scanner::text).map(|text| host = text.unwrap_or_default())
        } else {
            scanner.skip().map(drop)
        }
    })?;
    Ok(if host.is_empty() { path } else { host })
}

/// Whether a path that is no render node's name is another spelling of one: `/dev//dri/renderD128`.
fn is_misspelt(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| Render::parse(name).is_some())
        && clean(path).starts_with("/dev/dri/")
}

impl<'a> Outline<'a> {
    /// Finds the devices of a spec.
    ///
    /// # Errors
    /// The text is not JSON, or what is read of it has a wrong type. Or a key of the spec itself appears twice.
    /// One of a device is found when the device is wanted.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let outline = whole(text).map_err(|fault| no_spec(text, fault))?;
        Ok(Self { text, ..outline })
    }

    /// The devices in the spec's order: name and render nodes.
    pub fn devices(&self) -> impl Iterator<Item = (&str, &[Render])> {
        self.devices.iter().map(|device| (&*device.name, &*device.renders))
    }

    /// The spec with nothing but these devices (places in [`Outline::devices`]) in it, in this order, and with
    /// what every container with one of them gets.
    ///
    /// # Errors
    /// Their edits cannot be read.
    pub fn only(&self, places: impl IntoIterator<Item = usize>) -> Result<Spec<'a>, Error> {
        let read = || {
            let at = |span: Span| Scanner::at(self.text, span.start);
            let places = places.into_iter();
            let mut devices = Vec::with_capacity(places.size_hint().0);
            for named in places.filter_map(|place| self.devices.get(place)) {
                devices.push(object::<Device<'a>>(&mut at(named.whole))?);
            }
            let edits = self.edits.map(|span| object::<Edits<'a>>(&mut at(span))).transpose()?;
            Ok((devices, edits.unwrap_or_default()))
        };
        let (devices, edits) = read().map_err(|fault| no_spec(self.text, fault))?;
        Ok(Spec { devices, edits, ..self.spec.clone() })
    }

    /// What makes the spec as a whole useless, whatever is taken from it: another vendor's kind, a render node under a name
    /// that the wrapper does not know, a name that appears twice.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        if self.spec.kind != KIND {
            let problem = format!("{} is not {KIND}: these are not AMD's GPUs", Quoted(&self.spec.kind));
            return Some(Fault { at: "kind".to_owned(), problem });
        }
        let devices = &self.devices;
        let misspelt =
            devices.iter().enumerate().find_map(|(at, device)| Some((at, device.misspelt.as_ref()?)));
        if let Some((at, path)) = misspelt {
            let problem = format!(
                "the wrapper does not read the path {}: write it as {}",
                Quoted(path),
                Quoted(&clean(path))
            );
            return Some(Fault { at: format!("devices[{at}]"), problem });
        }
        let mut names = FxHashSet::with_capacity_and_hasher(devices.len(), FxBuildHasher);
        let (at, twice) = devices.iter().enumerate().find(|(_, device)| !names.insert(&device.name))?;
        Some(Fault {
            at: format!("devices[{at}]"),
            problem: format!("the name {} appears twice, which voids the whole spec", Quoted(&twice.name)),
        })
    }
}

fn no_spec(text: &str, fault: json::Fault) -> Error {
    Error::new(format!("not a CDI spec: {}", fault.of(text)))
}
