//! Finds the places in a bundle that the wrapper reads or edits.

use raw_json::Text;

use crate::{
    Error,
    object::{ARRAY, OBJECT, Object, list, unwanted},
};

/// A process object. Each place is the list's or object's, or its `null`.
#[derive(Clone, Debug)]
pub(crate) struct Process<'a> {
    pub(crate) object: Object<'a>,
    pub(crate) env: Option<&'a str>,
    pub(crate) entries: Vec<Text<'a>>,
    pub(crate) user: Option<&'a str>,
    pub(crate) gids: Option<&'a str>,
}

impl<'a> Process<'a> {
    pub(crate) fn read(object: Object<'a>) -> Result<Self, Error> {
        let env = object.container("env", ARRAY)?;
        let entry = |value| Text::of(value).ok_or_else(|| unwanted(object.document(), value, "a string"));
        let entries = list(env).into_iter().map(entry).collect::<Result<_, _>>()?;
        let user = object.container("user", OBJECT)?;
        let gids = object.within(user)?.map_or(Ok(None), |user| user.container("additionalGids", ARRAY))?;
        Ok(Self { env, entries, user, gids, object })
    }
}

/// The places in `linux`: a list or object each, or its `null`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Linux<'a> {
    pub(crate) devices: Option<&'a str>,
    pub(crate) resources: Option<&'a str>,
    /// `linux.resources.devices`.
    pub(crate) rules: Option<&'a str>,
    pub(crate) namespaces: Option<&'a str>,
    pub(crate) uid_mappings: Option<&'a str>,
    pub(crate) gid_mappings: Option<&'a str>,
    /// The string. Only a lease looks at it, so the lease reports what is odd about it. At null, Go's decoder leaves what
    /// it has read already.
    pub(crate) cgroups_path: Option<&'a str>,
}

impl<'a> Linux<'a> {
    pub(crate) fn read(object: &Object<'a>) -> Result<Self, Error> {
        let resources = object.container("resources", OBJECT)?;
        Ok(Self {
            devices: object.container("devices", ARRAY)?,
            resources,
            rules: object
                .within(resources)?
                .map_or(Ok(None), |resources| resources.container("devices", ARRAY))?,
            namespaces: object.container("namespaces", ARRAY)?,
            uid_mappings: object.container("uidMappings", ARRAY)?,
            gid_mappings: object.container("gidMappings", ARRAY)?,
            cgroups_path: object.all("cgroupsPath").filter(|path| *path != "null").last(),
        })
    }
}
