//! Releases of ROCm by their first two numbers, for the tables in crates/config/src/data.

/// The first two numbers of a release: of `7.10.0`, of `7.13.0rc2`.
pub(super) fn minor(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.');
    let (major, minor) = (parts.next()?, parts.next()?);
    let digits = minor.find(|c: char| !c.is_ascii_digit()).unwrap_or(minor.len());
    Some((number(major)?, number(&minor[..digits])?))
}

/// Decimal digits and nothing else.
pub(super) fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Whether a release is between two of a table, both included; `-`: any.
pub(super) fn is_between(release: Option<(u32, u32)>, from: &str, to: &str) -> bool {
    let fits = |limit: &str, is_right: fn(&(u32, u32), &(u32, u32)) -> bool| {
        limit == "-" || release.zip(minor(limit)).is_some_and(|(release, limit)| is_right(&release, &limit))
    };
    fits(from, PartialOrd::ge) && fits(to, PartialOrd::le)
}

/// The lines of a table, in words.
pub(super) fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_whitespace().collect::<Vec<_>>().try_into().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_compared_by_its_first_two_numbers() {
        for (release, from, to, expected) in [
            ("7.10.0", "7.10", "7.13", true),
            ("7.13.0a20260515", "7.10", "7.13", true),
            ("7.14.0", "7.10", "7.13", false),
            ("7.9.0", "7.10", "-", false),
            ("10.0.0", "7.14", "-", true),
            ("7.13rc2", "7.13", "7.13", true),
            ("newest", "-", "-", true),
            ("newest", "7.10", "-", false),
        ] {
            assert_eq!(is_between(minor(release), from, to), expected, "{release}");
        }
    }

    #[test]
    fn every_line_of_a_table_is_a_row() {
        let lines = |table: &str| table.lines().filter(|line| !line.starts_with('#')).count();
        let (one, other) = (include_str!("data/amdgpu-install.txt"), include_str!("data/therock.txt"));
        assert_eq!(rows::<3>(one).count(), lines(one));
        assert_eq!(rows::<5>(other).count(), lines(other));
    }
}
