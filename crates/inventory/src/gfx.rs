use std::fmt;

/// A GPU's instruction set, as compilers name it: `gfx942`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gfx {
    major: u32,
    minor: u32,
    stepping: u32,
}

impl Gfx {
    /// Decodes KFD's `gfx_target_version`: major * 10000 + minor * 100 + stepping (kfd_device.c). `None`
    /// where minor or stepping does not fit the one hexadecimal digit that the name has for it.
    #[must_use]
    pub fn from_target_version(version: u32) -> Option<Self> {
        let gfx = Self { major: version / 10_000, minor: version / 100 % 100, stepping: version % 100 };
        (gfx.major < 100 && gfx.minor < 16 && gfx.stepping < 16).then_some(gfx)
    }

    /// Whether only APUs have this architecture: the kernel sets `AMD_IS_APU` for its chips
    /// (amdgpu_discovery_set_ip_blocks() in amdgpu_discovery.c, and `pciidlist` in amdgpu_drv.c).
    /// kgd2kfd_probe() in kfd_device.c gives the architectures of chips.
    #[must_use]
    pub fn is_integrated(self) -> bool {
        matches!(
            (self.major, self.minor, self.stepping),
            (7, 0, 0)
                | (8, 0, 1)
                | (9, 0, 2 | 12)
                | (10, 1, 3)
                | (10, 3, 3 | 5 | 6)
                | (11, 0, 3)
                | (11, 5 | 7, _)
        )
    }
}

impl fmt::Display for Gfx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gfx{}{:x}{:x}", self.major, self.minor, self.stepping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_architecture_that_only_processors_have_is_integrated() {
        let integrated = |version| Gfx::from_target_version(version).is_some_and(Gfx::is_integrated);
        // Kaveri, Carrizo, Raven, Renoir, Van Gogh, Rembrandt, Raphael, Phoenix, Strix Point, Strix Halo, Krackan.
        for version in
            [70_000, 80_001, 90_002, 90_012, 100_303, 100_305, 100_306, 110_003, 110_500, 110_501, 110_502]
        {
            assert!(integrated(version), "{version}");
        }
        // Hawaii, Polaris, Vega 10, Vega 12, Vega 20, MI210, MI300A, Navi 21 and 24, Navi 31 and 32, Navi 48, MI400.
        for version in [
            70_001, 80_003, 90_000, 90_004, 90_006, 90_010, 90_402, 100_300, 100_304, 110_000, 110_001,
            120_001, 120_500,
        ] {
            assert!(!integrated(version), "{version}");
        }
    }

    #[test]
    fn architectures_are_named_as_compilers_name_them() {
        for (version, name) in [
            (90_402, "gfx942"),
            (90_010, "gfx90a"),
            (90_500, "gfx950"),
            (100_303, "gfx1033"),
            (110_003, "gfx1103"),
            (120_001, "gfx1201"),
        ] {
            assert_eq!(Gfx::from_target_version(version).map(|gfx| gfx.to_string()).as_deref(), Some(name));
        }
    }
}
