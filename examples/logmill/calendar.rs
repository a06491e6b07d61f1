//! Moments, as far as log lines need them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub const MONTHS: [&[u8]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
const SECONDS_OF_DAY: u64 = 86_400;
/// 1970-01-01, counted from the day before the March of year 0.
const EPOCH_DAY: i64 = 719_469;
/// A leap year comes at least so often.
const LEAP_GAP: i64 = 8;

/// A date without a year, and a time of day: what RFC 3164 has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Yearless {
    /// From 1.
    pub month: u8,
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
}

impl Yearless {
    /// Whether some year has it.
    pub fn is_valid(self) -> bool {
        let longest =
            (1..=12).contains(&self.month) && (1..=days_in_month(2024, self.month)).contains(&self.day);
        longest && self.hour < 24 && self.minute < 60 && self.second < 60
    }

    /// In the latest year that puts it no later than a day after `received`: clocks and time zones differ, and
    /// lines from before the New Year arrive after it.
    pub fn to_rfc3339(self, received: SystemTime) -> Option<String> {
        let today = days_since_epoch(received);
        let (this_year, ..) = date(today);
        let fits = |year: &i64| {
            self.day <= days_in_month(*year, self.month) && days(*year, self.month, self.day) <= today + 1
        };
        let year = (this_year - LEAP_GAP..=this_year + 1).rev().find(fits)?;
        let Self { month, day, hour, minute, second } = self;
        Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
    }
}

/// UTC to the microsecond, `2026-11-22T00:30:00.123456Z`.
pub fn rfc3339(moment: SystemTime) -> String {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (year, month, day) = date(days_since_epoch(moment));
    let second = since.as_secs() % SECONDS_OF_DAY;
    let (hour, minute, second, micros) =
        (second / 3600, second / 60 % 60, second % 60, since.subsec_micros());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Whether this is a date and a time of day as RFC 5424 wants them, and what follows: empty, or the offset.
pub fn split_date_time(text: &[u8]) -> Option<&[u8]> {
    let digits = |range: std::ops::Range<usize>| -> Option<i64> {
        text.get(range)?.iter().try_fold(0, |sum, byte| match byte {
            b'0'..=b'9' => Some(sum * 10 + i64::from(byte - b'0')),
            _ => None,
        })
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if !marks.iter().all(|&(at, mark)| text.get(at) == Some(&mark)) {
        return None;
    }
    let (year, month, day) = (digits(0..4)?, digits(5..7)? as u8, digits(8..10)? as u8);
    let date_exists = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    // No leap seconds: RFC 5424 forbids them.
    let time_exists = digits(11..13)? < 24 && digits(14..16)? < 60 && digits(17..19)? < 60;
    if !(date_exists && time_exists) {
        return None;
    }
    let rest = text.get(19..)?;
    let Some(fraction) = rest.strip_prefix(b".") else { return Some(rest) };
    let len = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // Microseconds are the finest that RFC 5424 allows.
    (1..=6).contains(&len).then(|| &fraction[len..])
}

/// Whether this is `Z` or a numeric offset, `-07:00`.
pub fn is_offset(text: &[u8]) -> bool {
    match text {
        b"Z" => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => {
            let all_digits = [h1, h2, m1, m2].iter().all(|byte| byte.is_ascii_digit());
            all_digits && [*h1, *h2] <= *b"23" && [*m1, *m2] <= *b"59"
        }
        _ => false,
    }
}

fn days_since_epoch(moment: SystemTime) -> i64 {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_secs() / SECONDS_OF_DAY).unwrap_or(0)
}

fn days_in_month(year: i64, month: u8) -> u8 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to this date. The year is taken to begin in March, so that the leap day ends it.
fn days(year: i64, month: u8, day: u8) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let before_month = (153 * i64::from(month) + 2) / 5;
    365 * year + leap_days + before_month + i64::from(day) - EPOCH_DAY
}

/// The other way round: year, month, day. For days from 1970 on.
fn date(days_since_epoch: i64) -> (i64, u8, u8) {
    let mut year = 1970 + days_since_epoch / 366;
    while days(year + 1, 1, 1) <= days_since_epoch {
        year += 1;
    }
    let month = (1..=12).rev().find(|&month| days(year, month, 1) <= days_since_epoch).unwrap_or(1);
    (year, month, (days_since_epoch - days(year, month, 1) + 1) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn every_day_of_four_centuries_is_found_again() {
        let (mut expected, mut month_len) = ((1970, 1, 1), 31);
        for day in 0..146_097 {
            assert_eq!((date(day), days(expected.0, expected.1, expected.2)), (expected, day));
            expected.2 += 1;
            if expected.2 > month_len {
                expected =
                    if expected.1 == 12 { (expected.0 + 1, 1, 1) } else { (expected.0, expected.1 + 1, 1) };
                month_len = days_in_month(expected.0, expected.1);
            }
        }
        assert_eq!(rfc3339(at(1_065_910_455)), "2003-10-11T22:14:15.000000Z");
        assert_eq!(rfc3339(at(0)), "1970-01-01T00:00:00.000000Z");
    }

    #[test]
    fn a_date_without_a_year_is_the_latest_that_can_be_meant() {
        let received = at(1_798_761_600); // 2027-01-01T00:00:00Z
        let said =
            |month, day| Yearless { month, day, hour: 23, minute: 59, second: 58 }.to_rfc3339(received);
        assert_eq!(said(12, 31).unwrap(), "2026-12-31T23:59:58Z");
        assert_eq!(said(1, 1).unwrap(), "2027-01-01T23:59:58Z");
        assert_eq!(said(1, 2).unwrap(), "2027-01-02T23:59:58Z", "a clock that is ahead");
        assert_eq!(said(1, 3).unwrap(), "2026-01-03T23:59:58Z");
        assert_eq!(said(2, 29).unwrap(), "2024-02-29T23:59:58Z", "the last year that has it");
        let eve = Yearless { month: 1, day: 1, hour: 0, minute: 0, second: 1 };
        assert_eq!(eve.to_rfc3339(at(1_798_761_599)).unwrap(), "2027-01-01T00:00:01Z", "from a zone ahead");
    }

    #[test]
    fn times_that_no_clock_shows_are_refused() {
        let full = |text: &str| split_date_time(text.as_bytes()).is_some_and(is_offset);
        for good in [
            "1985-04-12T23:20:50.52Z",
            "1985-04-12T19:20:50.52-04:00",
            "2003-10-11T22:14:15.003Z",
            "2003-08-24T05:14:15.000003-07:00",
            "2024-02-29T00:00:00Z",
        ] {
            assert!(full(good), "{good}");
        }
        for bad in [
            "2003-08-24T05:14:15.000000003-07:00",
            "2023-02-29T00:00:00Z",
            "2003-13-01T00:00:00Z",
            "2003-00-01T00:00:00Z",
            "2003-01-32T00:00:00Z",
            "2003-01-01T24:00:00Z",
            "2003-01-01T00:60:00Z",
            "2003-01-01T00:00:60Z",
            "2003-01-01t00:00:00Z",
            "2003-01-01T00:00:00z",
            "2003-01-01T00:00:00.Z",
            "2003-01-01T00:00:00+24:00",
            "2003-01-01T00:00:00+0100",
            "2003-01-01T00:00:00",
            "2003-01-01",
            "",
        ] {
            assert!(!full(bad), "{bad}");
        }
        for (month, day) in [(0, 1), (13, 1), (2, 30), (4, 31), (1, 0), (255, 255)] {
            assert!(!Yearless { month, day, hour: 0, minute: 0, second: 0 }.is_valid(), "{month} {day}");
        }
    }
}
