//! A GPU and its features, such as `gfx90a:sramecc+:xnack-`, and which code it runs.

/// What a `gfx…-generic` target covers (LLVM's AMDGPUUsage, Generic Processors).
const GENERIC: [(&str, &[&str]); 6] = [
    ("gfx9-generic", &["gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"]),
    ("gfx9-4-generic", &["gfx940", "gfx941", "gfx942", "gfx950"]),
    ("gfx10-1-generic", &["gfx1010", "gfx1011", "gfx1012", "gfx1013"]),
    ("gfx10-3-generic", &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"]),
    (
        "gfx11-generic",
        &["gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"],
    ),
    ("gfx12-generic", &["gfx1200", "gfx1201"]),
];

/// The target of a bundle's entry, where the entry is HIP's: `KIND-ARCH-VENDOR-OS-ENVIRONMENT-TARGET`. A generic target
/// has dashes itself.
pub(crate) fn of_entry(id: &str) -> Option<&str> {
    let mut parts = id.splitn(6, '-');
    let hip = matches!(parts.next()?, "hip" | "hipv4");
    let amdgpu = parts.next()? == "amdgcn" && parts.next()? == "amd" && parts.next()? == "amdhsa";
    let target = parts.nth(1)?;
    (hip && amdgpu && !target.is_empty()).then_some(target)
}

/// How well code fits a GPU: the more features it was built for, the better, and a generic target is worst. None where the
/// GPU cannot run it.
pub(crate) fn fit(code: &str, gpu: &str) -> Option<usize> {
    let (processor, features) = split(code);
    let (gpu_processor, gpu_features) = split(gpu);
    let covers =
        |(generic, covered): &(&str, &[&str])| *generic == processor && covered.contains(&gpu_processor);
    let own = processor == gpu_processor;
    if !own && !GENERIC.iter().any(covers) {
        return None;
    }
    let mut fit = if own { 16 } else { 0 };
    for feature in features {
        // A feature that the code does not name may be on or off.
        if !gpu_features.clone().any(|of_gpu| of_gpu == feature) {
            return None;
        }
        fit += 1;
    }
    Some(fit)
}

fn split(target: &str) -> (&str, impl Iterator<Item = &str> + Clone) {
    let mut parts = target.split(':');
    (parts.next().unwrap_or_default(), parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_fits_a_gpu_by_its_processor_and_by_each_feature_that_it_names() {
        let gpu = "gfx90a:sramecc+:xnack-";
        for (code, fits) in [
            ("gfx90a", Some(16)),
            ("gfx90a:xnack-", Some(17)),
            ("gfx90a:sramecc+:xnack-", Some(18)),
            ("gfx90a:xnack+", None),
            ("gfx90a:sramecc-", None),
            ("gfx906", None),
            ("gfx9-generic", None),
            ("", None),
        ] {
            assert_eq!(fit(code, gpu), fits, "{code}");
        }
        assert_eq!(fit("gfx9-4-generic:xnack-", "gfx942:sramecc+:xnack-"), Some(1));
        assert_eq!(fit("gfx11-generic", "gfx1100"), Some(0));
        assert_eq!(fit("gfx90a:xnack-", "gfx90a"), None);
    }

    #[test]
    fn an_entry_of_a_bundle_names_its_target() {
        for (id, target) in [
            ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", Some("gfx90a:xnack-")),
            ("hip-amdgcn-amd-amdhsa--gfx906", Some("gfx906")),
            ("hipv4-amdgcn-amd-amdhsa-unknown-gfx942", Some("gfx942")),
            ("hipv4-amdgcn-amd-amdhsa--gfx9-4-generic", Some("gfx9-4-generic")),
            ("host-x86_64-unknown-linux--", None),
            ("host-x86_64-unknown-linux-gnu", None),
            ("openmp-amdgcn-amd-amdhsa--gfx906", None),
            ("hip-spirv64-amd-amdhsa--amdgcnspirv", None),
            ("hipv4-amdgcn-amd-amdhsa--", None),
            ("hipv4", None),
        ] {
            assert_eq!(of_entry(id), target, "{id}");
        }
    }
}
