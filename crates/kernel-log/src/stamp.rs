//! Strips what dmesg, journalctl, syslog, kubectl and people who copy a log put in front of the kernel's
//! record.

/// A line of a text, and what it says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamped<'t> {
    /// The record as the kernel wrote it.
    pub(crate) record: &'t [u8],
    /// The time of the record in the text's own format; empty where the line has none.
    pub(crate) time: &'t [u8],
    /// Whether the line's front shows that it is a record of the kernel's.
    pub(crate) is_stamped: bool,
}

/// `None` for a line of another facility than the kernel's. A blank in front begins the second line of a record
/// (dmesg and journalctl indent it), so that it is no record either.
pub(crate) fn stripped(line: &[u8]) -> Option<Stamped<'_>> {
    // A serial console ends a line so, and what lost its power while it wrote.
    let end = line.iter().rposition(|byte| !matches!(byte, b'\r' | b'\0')).map_or(0, |at| at + 1);
    let line = line.get(..end).unwrap_or(line);
    let plain = of_plain(line);
    if plain.is_some_and(|it| it.is_stamped) {
        return plain;
    }
    // What stands around a record proves nothing: only a stamp behind it does.
    match of_plain(uncovered(line)) {
        Some(bare) if !bare.is_stamped => plain,
        stamped => stamped,
    }
}

fn of_plain(line: &[u8]) -> Option<Stamped<'_>> {
    let mut rest = Rest { rest: line };
    // `kubectl logs --prefix`: [pod/NAME/CONTAINER].
    let is_pod = line.starts_with(b"[pod/") && rest.bracket(|_| true).is_some();
    // `dmesg --raw` and syslog(2): <6>. The facility is in front of the three bits of the level.
    let of_syslog = rest.priority();
    let of_kmsg = if of_syslog.is_none() { rest.priority_of_kmsg() } else { None };
    let priority = of_syslog.or(of_kmsg);
    let facility = rest.facility();
    if priority.is_some_and(|priority| priority > 7) || facility.is_some_and(|facility| facility != b"kern") {
        return None;
    }
    let mut time: &[u8] = b"";
    // kubectl writes its own time in front of the log's.
    let outer = rest.word_of_time();
    if outer.is_some() {
        rest.stream();
    }
    let bracketed = rest.bracket(is_time);
    // RFC 3164 has them behind a priority.
    let may_have_words =
        !is_pod && of_kmsg.is_none() && facility.is_none() && outer.is_none() && bracketed.is_none();
    let words = if may_have_words { rest.words_of_time() } else { None };
    for found in [outer, words, bracketed].into_iter().flatten() {
        time = found;
    }
    let has_time = !time.is_empty();
    let is_of_kernel = rest.kernel(has_time);
    // syslog writes the kernel's time behind its own, and rsyslog's imklog a blank in front of that.
    if is_of_kernel {
        let mut behind = Rest { rest: rest.rest.strip_prefix(b" ").unwrap_or(rest.rest) };
        if behind.bracket(is_seconds).is_some() {
            rest = behind;
        }
    }
    let caller = rest.bracket(is_caller);
    let is_stamped =
        is_pod || priority.is_some() || facility.is_some() || has_time || is_of_kernel || caller.is_some();
    Some(Stamped { record: rest.rest, time, is_stamped })
}

/// The line without what a serial console leaves in front of it, without marks of a quotation or of code, and
/// without what `grep -n` and `docker compose logs` add.
fn uncovered(line: &[u8]) -> &[u8] {
    let start = line.iter().position(|byte| !matches!(byte, b'\r' | b'\0')).unwrap_or(line.len());
    let mut line = line.get(start..).unwrap_or_default();
    // A further blank would begin the second line of a record.
    while let Some(quoted) = line.strip_prefix(b">").or_else(|| line.strip_prefix(b"|")) {
        line = quoted.strip_prefix(b" ").unwrap_or(quoted);
    }
    if let Some(code) = line.strip_prefix(b"`") {
        line = code.strip_suffix(b"`").unwrap_or(code);
    }
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let of_grep = || line.get(digits..)?.strip_prefix(b":").filter(|_| digits > 0);
    let of_compose = || {
        let (name, behind) = word(line)?;
        let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        behind.strip_prefix(b"| ").filter(|_| name.iter().all(is_of_name))
    };
    of_grep().or_else(of_compose).unwrap_or(line)
}

/// Bytes of a month's or a weekday's short name, in any language: `févr.` has 6.
const MOST_OF_A_NAME: usize = 8;

/// The unread rest of a line.
struct Rest<'t> {
    rest: &'t [u8],
}

impl<'t> Rest<'t> {
    /// The text between brackets, if it is what is looked for and a blank follows, or with CONFIG_PRINTK_CALLER brackets.
    fn bracket(&mut self, is_it: impl Fn(&[u8]) -> bool) -> Option<&'t [u8]> {
        let inside = self.rest.strip_prefix(b"[")?;
        let end = inside.iter().position(|byte| matches!(byte, b'[' | b']'))?;
        let (inside, behind) = inside.split_at_checked(end)?;
        let behind = behind.strip_prefix(b"]")?;
        let behind = behind.strip_prefix(b" ").or_else(|| behind.starts_with(b"[").then_some(behind))?;
        is_it(inside).then(|| {
            self.rest = behind;
            inside
        })
    }

    fn priority(&mut self) -> Option<u32> {
        let inside = self.rest.strip_prefix(b"<")?;
        let end = inside.iter().position(|byte| *byte == b'>')?;
        let (digits, behind) = inside.split_at_checked(end)?;
        let number = str::from_utf8(digits).ok()?.parse().ok()?;
        let behind = behind.get(1..)?;
        // The version of RFC 5424 follows.
        self.rest = behind.strip_prefix(b"1 ").unwrap_or(behind);
        Some(number)
    }

    /// `3,1234,5678901,-;` or `6,1,0,-,caller=T1;`: a record as /dev/kmsg gives it (Documentation/ABI/testing/dev-kmsg).
    fn priority_of_kmsg(&mut self) -> Option<u32> {
        let end = self.rest.iter().position(|byte| *byte == b';')?;
        let (numbers, behind) = self.rest.split_at_checked(end)?;
        let mut fields = numbers.split(|byte| *byte == b',');
        let mut number = || str::from_utf8(fields.next()?).ok()?.parse::<u64>().ok();
        let (priority, _sequence, _microseconds) = (number()?, number()?, number()?);
        self.rest = behind.get(1..)?;
        u32::try_from(priority).ok()
    }

    /// `stdout F `, which containerd and CRI-O write behind their time (CRI's log format).
    fn stream(&mut self) {
        const STREAMS: [&[u8]; 4] = [b"stdout F ", b"stdout P ", b"stderr F ", b"stderr P "];
        if let Some(behind) = STREAMS.iter().find_map(|stream| self.rest.strip_prefix(*stream)) {
            self.rest = behind;
        }
    }

    /// `kern  :err   : `, of `dmesg --decode`.
    fn facility(&mut self) -> Option<&'t [u8]> {
        const LEVELS: [&[u8]; 8] =
            [b"emerg", b"alert", b"crit", b"err", b"warn", b"notice", b"info", b"debug"];
        let mut parts = self.rest.splitn(3, |byte| *byte == b':');
        let (facility, level, behind) = (parts.next()?, parts.next()?, parts.next()?);
        if !LEVELS.contains(&level.trim_ascii()) {
            return None;
        }
        self.rest = behind.trim_ascii_start();
        Some(facility.trim_ascii())
    }

    /// `2026-01-07T10:00:25.890123-06:00` (syslog, kubectl, short-iso, `dmesg --time-format iso`), `1732300000.123456`
    /// (short-unix).
    fn word_of_time(&mut self) -> Option<&'t [u8]> {
        let (word, behind) = word(self.rest)?;
        let is_iso = word.get(10) == Some(&b'T') && word.get(..10).is_some_and(is_date);
        let is_unix = word.len() > 10 && is_seconds(word);
        (is_iso || is_unix).then(|| {
            self.rest = behind;
            word
        })
    }

    /// `Jan  7 10:00:25` (syslog, short) and `Wed 2026-01-07 10:00:25 CET` (short-full), with names in the language of
    /// whoever wrote it. A kernel's record has two words and a clock in this shape nowhere at its beginning.
    fn words_of_time(&mut self) -> Option<&'t [u8]> {
        let (name, behind) = word(self.rest)?;
        let (day, behind) = word(behind)?;
        let (clock, behind) = word(behind)?;
        let is_no_letter = |byte: &u8| byte.is_ascii_punctuation() || byte.is_ascii_control();
        let is_name = name.len() <= MOST_OF_A_NAME && !name.iter().any(is_no_letter);
        let is_day = day.len() <= 2 && day.iter().all(u8::is_ascii_digit);
        let has_date = is_date(day);
        if !is_name || !(is_day || has_date) || !has_shape(clock.get(..8)?, b"00:00:00") {
            return None;
        }
        // `journalctl -o short-precise` adds microseconds.
        if !clock.get(8..)?.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.') {
            return None;
        }
        let zone = word(behind).filter(|(word, _)| has_date && word.is_ascii());
        let end = self.rest.len() - behind.len();
        let time = self.rest.get(..end)?.trim_ascii_end();
        self.rest = zone.map_or(behind, |(_, behind)| behind);
        Some(time)
    }

    /// `kernel: `, behind a time with the machine's name in front; as busybox' syslogd writes it, `kern.err kernel: `; in
    /// RFC 5424's format, `kernel - - - `.
    fn kernel(&mut self, has_time: bool) -> bool {
        let kernel = |text: &'t [u8]| {
            let of_busybox =
                || word(text).filter(|(word, _)| word.starts_with(b"kern.")).map(|(_, behind)| behind);
            let text = of_busybox().unwrap_or(text);
            text.strip_prefix(b"kernel: ").or_else(|| text.strip_prefix(b"kernel - - - "))
        };
        let host = || word(self.rest).filter(|(host, _)| has_time && !host.contains(&b':'));
        let behind = kernel(self.rest).or_else(|| host().and_then(|(_, behind)| kernel(behind)));
        behind.is_some_and(|behind| {
            self.rest = behind;
            true
        })
    }
}

/// A word, and what follows the blanks behind it.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| *byte == b' ')?;
    let (word, behind) = text.split_at_checked(end)?;
    (!word.is_empty()).then(|| (word, behind.trim_ascii_start()))
}

/// `12.345678`, `+0.000001`: with a dot, unlike the process numbers of the OOM killer's table.
fn is_seconds(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    digits.contains(&b'.') && digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

/// Whether dmesg writes such a text into brackets: `12.345678`, `Thu Sep 10 14:36:18 2026` (--ctime), `Sep10
/// 14:36` (--reltime).
fn is_time(text: &[u8]) -> bool {
    is_seconds(text) || !text.starts_with(b"drm") && text.split(|byte| *byte == b' ').any(is_clock)
}

/// Whether the text is a task's or a CPU's number, which CONFIG_PRINTK_CALLER adds.
fn is_caller(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    text.strip_prefix(b"T")
        .or(text.strip_prefix(b"C"))
        .is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
}

fn is_date(text: &[u8]) -> bool {
    text.len() == 10 && has_shape(text, b"0000-00-00")
}

fn is_clock(text: &[u8]) -> bool {
    has_shape(text, b"00:00:00") || has_shape(text, b"00:00")
}

/// `0` of a shape is any digit.
fn has_shape(text: &[u8], shape: &[u8]) -> bool {
    let is_alike = |(byte, shape): (&u8, &u8)| {
        if *shape == b'0' { byte.is_ascii_digit() } else { byte == shape }
    };
    text.len() == shape.len() && text.iter().zip(shape).all(is_alike)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_program_writes_in_front_of_a_record_is_stripped_and_nothing_else() {
        let record = "amdgpu 0000:03:00.0: amdgpu: GPU reset begin!";
        for (front, time) in [
            // dmesg, and its --decode, --raw, --ctime, --reltime, --time-format=delta and =iso.
            ("[   12.345678] ", "   12.345678"),
            ("[   12.345678] [  T53331] ", "   12.345678"),
            ("[   12.345678][    C3] ", "   12.345678"),
            ("kern  :err   : [   12.345678] ", "   12.345678"),
            ("<3>[   12.345678] ", "   12.345678"),
            ("[Thu Sep 10 14:36:18 2026] ", "Thu Sep 10 14:36:18 2026"),
            ("[Do Mär 26 07:38:49 2020] ", "Do Mär 26 07:38:49 2020"),
            ("[Sep10 14:36] ", "Sep10 14:36"),
            ("[  +0.000001] ", "  +0.000001"),
            ("2026-01-07T10:02:00,123456-06:00 ", "2026-01-07T10:02:00,123456-06:00"),
            ("kern  :err   : 2026-01-07T10:02:00,123456-06:00 ", "2026-01-07T10:02:00,123456-06:00"),
            ("kern  :err   : ", ""),
            // journalctl's short, short-full, short-iso, short-unix, short-monotonic, and with --no-hostname.
            ("Jul 24 12:26:16 macross kernel: ", "Jul 24 12:26:16"),
            ("kvě 25 19:29:58 bc250 kernel: ", "kvě 25 19:29:58"),
            ("Wed 2026-01-07 10:00:25 CET box kernel: ", "Wed 2026-01-07 10:00:25"),
            ("2026-01-07T10:00:25+0100 box kernel: ", "2026-01-07T10:00:25+0100"),
            ("1732300000.123456 box kernel: ", "1732300000.123456"),
            ("[   12.345678] box kernel: ", "   12.345678"),
            ("Feb  2 08:03:20 kernel: [37932.038809] ", "Feb  2 08:03:20"),
            ("kernel: ", ""),
            // rsyslog, with the kernel's own time behind its own.
            ("Sep 19 16:18:02 bubz kernel: [68183.615810] ", "Sep 19 16:18:02"),
            (
                "2026-01-07T10:00:25.890123-06:00 box kernel: [    4.129352] [ T1] ",
                "2026-01-07T10:00:25.890123-06:00",
            ),
            (
                "2026-01-07T10:00:25.890123-06:00 box kernel:  [    4.129352] ",
                "2026-01-07T10:00:25.890123-06:00",
            ),
            // busybox' syslogd, RFC 3164 and 5424, /dev/kmsg.
            ("Jan  7 10:00:25 box kern.err kernel: ", "Jan  7 10:00:25"),
            ("<3>Jan  7 10:00:25 box kernel: ", "Jan  7 10:00:25"),
            ("<3>Jan  7 10:00:25 box kernel: [   12.345678] ", "Jan  7 10:00:25"),
            ("<3>1 2026-01-07T10:00:25.003Z box kernel - - - ", "2026-01-07T10:00:25.003Z"),
            ("<3>1 2026-01-07T10:00:25.003Z box kernel - - -  [   12.345678] ", "2026-01-07T10:00:25.003Z"),
            ("3,1234,5678901,-;", ""),
            ("6,1,0,-,caller=T1;", ""),
            ("> > [   12.345678] ", "   12.345678"),
            // A node's file of a container's log.
            ("2026-01-07T10:00:25.890123456Z stdout F [   12.345678] ", "   12.345678"),
            // kubectl logs, its --prefix and --timestamps.
            ("[pod/dmesg/main] ", ""),
            ("[pod/dmesg/main] 2026-01-07T10:00:25.890123456Z [   12.345678] ", "   12.345678"),
            ("2026-01-07T10:00:25.890123456Z ", "2026-01-07T10:00:25.890123456Z"),
        ] {
            let line = format!("{front}{record}");
            let found = stripped(line.as_bytes()).unwrap();
            assert_eq!(String::from_utf8_lossy(found.record), record, "{line}");
            assert_eq!(
                (String::from_utf8_lossy(found.time), found.is_stamped),
                (time.into(), true),
                "{line}"
            );
        }
        for line in [
            record,
            "",
            "[",
            "[drm] Initialized amdgpu",
            "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout",
            // The OOM killer's table (mm/oom_kill.c), and a program's own time.
            "[   1234]  1000  1234   56789     1000    81920        0             0 x",
            "10:00:25 amdgpu: x",
            "Jul 24 host kernel: amdgpu: x",
            "x kernel: amdgpu: x",
            "12 amdgpu: x",
        ] {
            let found = stripped(line.as_bytes()).unwrap();
            assert_eq!(
                (found.record, found.time, found.is_stamped),
                (line.as_bytes(), &b""[..], false),
                "{line}"
            );
        }
    }

    #[test]
    fn what_stands_around_a_line_is_stripped_where_a_stamp_is_behind_it() {
        let record = "amdgpu 0000:03:00.0: amdgpu: GPU reset begin!";
        let around = [
            ("\r", ""),
            ("\0\0", "\r\r\0"),
            ("> > ", ""),
            (">> ", ""),
            (">", ""),
            ("| ", ""),
            ("`", "`"),
            ("123:", ""),
            ("dmesg-1  | ", ""),
        ];
        for (front, end) in around {
            for stamp in
                ["[   12.345678] ", "Jul 24 12:26:16 box kernel: ", "kern  :err   : ", "<3>", "kernel: "]
            {
                let line = format!("{front}{stamp}{record}{end}");
                let found = stripped(line.as_bytes()).unwrap();
                assert_eq!((found.record, found.is_stamped), (record.as_bytes(), true), "{line:?}");
            }
            let line = format!("{front}{record}");
            let found = stripped(line.as_bytes()).unwrap();
            assert_eq!((found.record, found.is_stamped), (line.as_bytes(), false), "{line:?}");
            assert_eq!(stripped(format!("{front}<11>{record}").as_bytes()), None, "{front:?}");
        }
        // The second line of a record in a quotation, a field that any program's entry has, and a name with a colon.
        for line in [">   [   12.5] x", "MESSAGE=x", "    MESSAGE=x", "x:123:[12.5] x", "a b | [12.5] x"] {
            let found = stripped(line.as_bytes()).unwrap();
            assert_eq!((found.record, found.is_stamped), (line.as_bytes(), false), "{line}");
        }
    }

    #[test]
    fn a_programs_line_is_none_of_the_kernels() {
        for line in [
            "11,1234,5678901,-;amdgpu 0000:03:00.0: amdgpu: GPU reset begin!",
            "<11>1 2026-01-07T10:00:25.003Z box x - - - amdgpu: GPU reset begin!",
            "<11>amdgpu 0000:03:00.0: amdgpu: GPU reset begin!",
            "<30>[   12.345678] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!",
            "user  :err   : [   12.345678] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!",
            "daemon:info  : [   12.345678] systemd[1]: amdgpu: GPU reset begin!",
        ] {
            assert_eq!(stripped(line.as_bytes()), None, "{line}");
        }
        for (line, record) in [
            (
                "Jul 24 12:26:16 box sshd[7]: amdgpu: GPU reset begin!",
                "box sshd[7]: amdgpu: GPU reset begin!",
            ),
            ("Jul 24 12:26:16 box x: kernel: amdgpu: failed", "box x: kernel: amdgpu: failed"),
            ("[   12.5]  amdgpu: failed", " amdgpu: failed"),
            ("  [   12.5] amdgpu: failed", "  [   12.5] amdgpu: failed"),
        ] {
            assert_eq!(String::from_utf8_lossy(stripped(line.as_bytes()).unwrap().record), record, "{line}");
        }
    }
}
