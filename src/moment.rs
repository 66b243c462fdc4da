//! Moments as people and file names write them.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// A moment, to the second, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    seconds: u64,
}

impl Moment {
    /// A clock before 1970 is a clock that was never set: then 1970.
    #[must_use]
    pub fn of(time: SystemTime) -> Self {
        Self { seconds: time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()) }
    }

    /// Seconds since 1970.
    #[must_use]
    pub fn seconds(self) -> u64 {
        self.seconds
    }

    /// For file names: `20261121T073700Z`.
    #[must_use]
    pub fn compact(self) -> String {
        self.to_string().replace(['-', ':'], "")
    }

    /// Year, month and day in the Gregorian calendar, from whole 400-year eras of 146,097 days that begin on
    /// 1 March 0000, so that the leap day is the last of its year.
    fn date(self) -> (u64, u64, u64) {
        const FROM_MARCH_0000_TO_1970: u64 = 719_468;
        let days = self.seconds / 86_400 + FROM_MARCH_0000_TO_1970;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = era * 400 + year_of_era + u64::from(month <= 2);
        (year, month, day)
    }
}

impl fmt::Display for Moment {
    /// `2026-11-21T07:37:00Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        let (hour, minute, second) = (self.seconds / 3600 % 24, self.seconds / 60 % 60, self.seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_date_prints_them() {
        // Each from `date -u -d @SECONDS +%FT%TZ` of coreutils.
        for (seconds, shown) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_795_246_620, "2026-11-21T07:37:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
        ] {
            assert_eq!(Moment { seconds }.to_string(), shown);
        }
        assert_eq!(Moment { seconds: 1_795_246_620 }.compact(), "20261121T073700Z");
    }
}
