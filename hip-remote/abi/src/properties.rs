//! `hipDeviceProp_t`: ROCm 6 laid it out anew, and its libraries still fill the older one for older programs.
//!
//! Sources: hip_runtime_api.h of 5.2.3 and 6.4.3, measured by gcc; the tests measure both again.

use std::ops::Range;

/// As the protocol numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// What `hipGetDeviceProperties` fills, of any release.
    Rocm5 = 0,
    /// What `hipGetDevicePropertiesR0600` fills.
    Rocm6 = 1,
}

impl Layout {
    pub fn of_number(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Rocm5),
            1 => Some(Self::Rocm6),
            _ => None,
        }
    }

    /// Of the struct, in bytes.
    pub fn size(self) -> usize {
        match self {
            Self::Rocm5 => 792,
            Self::Rocm6 => 1472,
        }
    }
}

/// A field's name, where it begins in each layout, and its size.
type Field = (&'static str, Option<usize>, Option<usize>, usize);

/// What is not here is 0 in a client: textures, mapped and managed memory, cooperative launches, pools, IPC, addresses in the
/// worker (crate::attributes has more).
const FIELDS: [Field; 59] = [
    ("name", Some(0), Some(0), 256),
    ("totalGlobalMem", Some(256), Some(288), 8),
    ("sharedMemPerBlock", Some(264), Some(296), 8),
    ("regsPerBlock", Some(272), Some(304), 4),
    ("warpSize", Some(276), Some(308), 4),
    ("maxThreadsPerBlock", Some(280), Some(320), 4),
    ("maxThreadsDim", Some(284), Some(324), 12),
    ("maxGridSize", Some(296), Some(336), 12),
    ("clockRate", Some(308), Some(348), 4),
    ("memoryClockRate", Some(312), Some(608), 4),
    ("memoryBusWidth", Some(316), Some(612), 4),
    ("totalConstMem", Some(320), Some(352), 8),
    ("major", Some(328), Some(360), 4),
    ("minor", Some(332), Some(364), 4),
    ("multiProcessorCount", Some(336), Some(388), 4),
    ("l2CacheSize", Some(340), Some(616), 4),
    ("maxThreadsPerMultiProcessor", Some(344), Some(624), 4),
    ("computeMode", Some(348), Some(404), 4),
    ("clockInstructionRate", Some(352), Some(1424), 4),
    ("arch", Some(356), Some(1428), 4),
    ("concurrentKernels", Some(360), Some(576), 4),
    ("pciDomainID", Some(364), Some(592), 4),
    ("pciBusID", Some(368), Some(584), 4),
    ("pciDeviceID", Some(372), Some(588), 4),
    ("maxSharedMemoryPerMultiProcessor", Some(376), Some(1416), 8),
    ("isMultiGpuBoard", Some(384), Some(656), 4),
    ("gcnArch", Some(392), None, 4),
    ("gcnArchName", Some(396), Some(1160), 256),
    ("integrated", Some(652), Some(396), 4),
    ("memPitch", Some(712), Some(312), 8),
    ("textureAlignment", Some(720), Some(368), 8),
    ("texturePitchAlignment", Some(728), Some(376), 8),
    ("kernelExecTimeoutEnabled", Some(736), Some(392), 4),
    ("ECCEnabled", Some(740), Some(580), 4),
    ("tccDriver", Some(744), Some(596), 4),
    ("asicRevision", Some(768), Some(1468), 4),
    ("uuid", None, Some(256), 16),
    ("luid", None, Some(272), 8),
    ("luidDeviceNodeMask", None, Some(280), 4),
    ("deviceOverlap", None, Some(384), 4),
    ("surfaceAlignment", None, Some(568), 8),
    ("asyncEngineCount", None, Some(600), 4),
    ("unifiedAddressing", None, Some(604), 4),
    ("persistingL2CacheMaxSize", None, Some(620), 4),
    ("streamPrioritiesSupported", None, Some(628), 4),
    ("globalL1CacheSupported", None, Some(632), 4),
    ("localL1CacheSupported", None, Some(636), 4),
    ("sharedMemPerMultiprocessor", None, Some(640), 8),
    ("regsPerMultiprocessor", None, Some(648), 4),
    ("multiGpuBoardGroupID", None, Some(660), 4),
    ("singleToDoublePrecisionPerfRatio", None, Some(668), 4),
    ("computePreemptionSupported", None, Some(680), 4),
    ("sharedMemPerBlockOptin", None, Some(696), 8),
    ("maxBlocksPerMultiProcessor", None, Some(712), 4),
    ("accessPolicyMaxWindowSize", None, Some(716), 4),
    ("reservedSharedMemPerBlock", None, Some(720), 8),
    ("hostRegisterSupported", None, Some(728), 4),
    ("hostRegisterReadOnlySupported", None, Some(736), 4),
    ("unifiedFunctionPointers", None, Some(776), 4),
];

/// Fields that ROCm 6 added, and the older one whose value each has in AMD's own library.
const ADDED: [(&str, &str); 3] = [
    ("sharedMemPerMultiprocessor", "maxSharedMemoryPerMultiProcessor"),
    ("regsPerMultiprocessor", "regsPerBlock"),
    ("sharedMemPerBlockOptin", "sharedMemPerBlock"),
];

/// The fields of a layout, and where each lies.
pub fn fields(layout: Layout) -> impl Iterator<Item = (&'static str, Range<usize>)> {
    FIELDS.iter().filter_map(move |field| Some((field.0, place(layout, field)?)))
}

/// Where a field lies.
pub fn range(layout: Layout, name: &str) -> Option<Range<usize>> {
    fields(layout).find_map(|(known, range)| (known == name).then_some(range))
}

/// A struct as a worker's library filled it, as a client shows it: in the client's layout, without what does not go over the
/// network. None where the struct is too short.
pub fn converted(from: Layout, properties: &[u8], to: Layout) -> Option<Vec<u8>> {
    let mut converted = vec![0; to.size()];
    for field in &FIELDS {
        if let (Some(from), Some(to)) = (place(from, field), place(to, field)) {
            converted.get_mut(to)?.copy_from_slice(properties.get(from)?);
        }
    }
    if from == Layout::Rocm5 && to == Layout::Rocm6 {
        for (added, older) in ADDED {
            converted.get_mut(range(to, added)?)?.copy_from_slice(properties.get(range(from, older)?)?);
        }
    }
    if from == Layout::Rocm6 && to == Layout::Rocm5 {
        let number = processor_number(properties.get(range(from, "gcnArchName")?)?).unwrap_or(0);
        converted.get_mut(range(to, "gcnArch")?)?.copy_from_slice(&number.to_ne_bytes());
    }
    Some(converted)
}

/// `gcnArch` of `gfx90a:sramecc+:xnack-` is 910: major, minor and stepping, of which the last two are hexadecimal in the name.
fn processor_number(name: &[u8]) -> Option<u32> {
    let name = name.split(|byte| matches!(byte, b':' | 0)).next()?;
    let digits = std::str::from_utf8(name).ok()?.strip_prefix("gfx")?;
    let (major, rest) = digits.split_at_checked(digits.len().checked_sub(2)?)?;
    let mut rest = rest.chars().map(|digit| digit.to_digit(16));
    let (minor, stepping) = (rest.next()??, rest.next()??);
    major.parse::<u32>().ok()?.checked_mul(100)?.checked_add(minor * 10 + stepping)
}

fn place(layout: Layout, (_, rocm5, rocm6, size): &Field) -> Option<Range<usize>> {
    let begin = match layout {
        Layout::Rocm5 => (*rocm5)?,
        Layout::Rocm6 => (*rocm6)?,
    };
    Some(begin..begin + size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(layout: Layout) -> Vec<u8> {
        let mut properties: Vec<u8> =
            (0..layout.size()).map(|at| u8::try_from(at % 251).unwrap() | 1).collect();
        properties[range(layout, "gcnArchName").unwrap()][..23].copy_from_slice(b"gfx90a:sramecc+:xnack-\0");
        properties
    }

    #[test]
    fn a_field_that_both_layouts_have_keeps_its_value_on_the_way_there_and_back() {
        for (from, to) in [(Layout::Rocm5, Layout::Rocm6), (Layout::Rocm6, Layout::Rocm5)] {
            let properties = filled(from);
            let there = converted(from, &properties, to).unwrap();
            let back = converted(to, &there, from).unwrap();
            for field in FIELDS.iter().filter(|(_, rocm5, rocm6, _)| rocm5.is_some() && rocm6.is_some()) {
                let [at, there_at] = [from, to].map(|layout| place(layout, field).unwrap());
                assert_eq!(there[there_at], properties[at.clone()], "{}", field.0);
                assert_eq!(back[at.clone()], properties[at], "{}", field.0);
            }
        }
    }

    #[test]
    fn what_does_not_go_over_the_network_is_zero_in_a_client() {
        // canMapHostMemory, managedMemory, hdpMemFlushCntl; canMapHostMemory, cooperativeLaunch, hdpMemFlushCntl.
        for (layout, fields) in [
            (Layout::Rocm5, [388..392, 772..776, 696..704]),
            (Layout::Rocm6, [400..404, 688..692, 1432..1440]),
        ] {
            let shown = converted(layout, &filled(layout), layout).unwrap();
            for field in fields {
                assert!(shown[field.clone()].iter().all(|byte| *byte == 0), "{field:?}");
            }
        }
    }

    #[test]
    fn a_program_of_rocm_5_gets_the_number_of_a_processor_that_rocm_6_names_alone() {
        let shown = converted(Layout::Rocm6, &filled(Layout::Rocm6), Layout::Rocm5).unwrap();
        assert_eq!(shown[range(Layout::Rocm5, "gcnArch").unwrap()], 910_u32.to_ne_bytes());
        for (name, number) in
            [("gfx906", Some(906)), ("gfx1030", Some(1030)), ("gfx942:xnack-", Some(942)), ("Navi", None)]
        {
            assert_eq!(processor_number(name.as_bytes()), number, "{name}");
        }
    }

    #[test]
    fn fields_that_rocm_6_added_have_the_values_of_their_forerunners() {
        let properties = filled(Layout::Rocm5);
        let shown = converted(Layout::Rocm5, &properties, Layout::Rocm6).unwrap();
        for (added, older) in ADDED {
            let [added, older] =
                [range(Layout::Rocm6, added), range(Layout::Rocm5, older)].map(Option::unwrap);
            assert_eq!(shown[added], properties[older]);
        }
    }

    #[test]
    fn a_struct_that_is_cut_off_is_refused() {
        assert_eq!(converted(Layout::Rocm6, &filled(Layout::Rocm5), Layout::Rocm5), None);
    }
}
