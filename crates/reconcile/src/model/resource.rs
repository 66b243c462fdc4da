use std::fmt;
use std::path::{Path, PathBuf};

use root::Root;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const PACKAGE: &str = "package:";
const MODULE: &str = "module:";

/// The subject of an action, an entry or a change. In JSON a text: the path, `package:NAME` or `module:NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// A file, link, folder or device node beneath the Root.
    Path(PathBuf),
    /// A package by dpkg's name; `NAME:ARCHITECTURE` for an architecture other than the machine's.
    Package(String),
    /// A module of the kernel, by the name that modprobe knows.
    Module(String),
}

impl Resource {
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        if let Self::Path(path) = self { Some(path) } else { None }
    }

    #[must_use]
    pub fn is_package(&self) -> bool {
        matches!(self, Self::Package(_))
    }

    /// Shows the resource as [`Path::display`] shows a path.
    #[must_use]
    pub fn display(&self) -> &impl fmt::Display {
        self
    }

    /// The resource as a person finds it: a path begins with the Root's own.
    #[must_use]
    pub fn shown(&self, root: &Root) -> String {
        self.path().map_or_else(|| self.to_string(), |path| root.shown(path).display().to_string())
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Package(name) => write!(f, "{PACKAGE}{name}"),
            Self::Module(name) => write!(f, "{MODULE}{name}"),
        }
    }
}

impl<P: Into<PathBuf>> From<P> for Resource {
    fn from(path: P) -> Self {
        Self::Path(path.into())
    }
}

impl<P: AsRef<Path> + ?Sized> PartialEq<P> for Resource {
    fn eq(&self, path: &P) -> bool {
        self.path() == Some(path.as_ref())
    }
}

impl Serialize for Resource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Path(path) => path.serialize(serializer),
            Self::Package(_) | Self::Module(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Resource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let package = text.strip_prefix(PACKAGE).map(|name| Self::Package(name.to_owned()));
        let module = || text.strip_prefix(MODULE).map(|name| Self::Module(name.to_owned()));
        Ok(package.or_else(module).unwrap_or_else(|| Self::Path(PathBuf::from(&text))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_one_text_and_read_from_it() {
        for (resource, text) in [
            (Resource::from("/dev/kfd"), "/dev/kfd"),
            (Resource::Package("lib:i386".to_owned()), "package:lib:i386"),
            (Resource::Module("amdgpu".to_owned()), "module:amdgpu"),
        ] {
            assert_eq!(resource.to_string(), text);
            let json = serde_json::to_value(&resource).unwrap();
            assert_eq!(json, text);
            assert_eq!(serde_json::from_value::<Resource>(json).unwrap(), resource);
            assert_eq!(resource == Path::new(text), resource.path().is_some());
        }
    }
}
