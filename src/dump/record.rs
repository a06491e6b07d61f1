//! A dump record describes a single message, and is written as a single line of JSON.

use crate::failure::guarded;
use crate::util::panic::drop_guarded;
use std::fmt::{self, Debug, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Says which way a dumped message went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpDirection {
    /// An actor is about to handle the message.
    In,
    /// The message is being sent.
    Out,
}

/// A record of a single message. Its text is the JSON object that a file gets, without a line break:
///
/// ```text
/// {"time":1732709522.123456,"direction":"out","path":"/user/gateway","to":"ledgers","type":"shop::Order","message":"Order { account: 7 }"}
/// ```
///
/// | key | value |
/// |---|---|
/// | `time` | seconds since the beginning of 1970, by the clock of the machine when the dumper was made and by the clock of the system since |
/// | `direction` | `"in"` or `"out"` |
/// | `path` | the path of the actor that handles the message, or of the actor or group that sends it |
/// | `to` | of a message that is sent: the group or the path that it is sent to |
/// | `type` | the name of the type of the message |
/// | `message` | the message by `Debug` |
/// | `cut` | how many bytes of that text were left out, where it was longer than [`text_limit`](super::DumperBuilder::text_limit) |
/// | `omitted` | how many records were omitted since the record before, because of the rate or of a full queue |
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DumpRecord {
    /// The time of the record.
    pub time: SystemTime,
    /// Which way the message went.
    pub direction: DumpDirection,
    /// The path of the actor that handles the message, or of the actor or group that sends it.
    pub path: String,
    /// The group or the path that the message is sent to.
    pub to: Option<String>,
    /// The name of the type of the message.
    pub message_type: &'static str,
    /// The message by `Debug`.
    pub message: String,
    /// How many bytes of that text were left out.
    pub cut: usize,
    /// How many records were omitted since the record before.
    pub omitted: u64,
}

/// Shows the JSON object.
impl fmt::Display for DumpRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{\"time\":{}", Seconds(self.time))?;
        let direction = match self.direction {
            DumpDirection::In => "in",
            DumpDirection::Out => "out",
        };
        write!(f, ",\"direction\":\"{direction}\",\"path\":{}", Quoted(&self.path))?;
        if let Some(to) = &self.to {
            write!(f, ",\"to\":{}", Quoted(to))?;
        }
        write!(f, ",\"type\":{},\"message\":{}", Quoted(self.message_type), Quoted(&self.message))?;
        if self.cut > 0 {
            write!(f, ",\"cut\":{}", self.cut)?;
        }
        if self.omitted > 0 {
            write!(f, ",\"omitted\":{}", self.omitted)?;
        }
        f.write_char('}')
    }
}

/// The last line of a dump in which records were omitted after the last one.
pub(crate) struct OmittedAtEnd {
    pub time: SystemTime,
    pub omitted: u64,
}

impl fmt::Display for OmittedAtEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{\"time\":{},\"omitted\":{}}}", Seconds(self.time), self.omitted)
    }
}

/// A time in JSON.
struct Seconds(SystemTime);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.0.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        write!(f, "{}.{:06}", since.as_secs(), since.subsec_micros())
    }
}

/// A string in JSON.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        let mut rest = self.0;
        while let Some(at) =
            rest.find(|c: char| matches!(c, '"' | '\\' | '\0'..='\x1f' | '\x7f' | '\u{2028}' | '\u{2029}'))
        {
            let (plain, special) = rest.split_at(at);
            f.write_str(plain)?;
            let mut chars = special.chars();
            match chars.next() {
                Some('"') => f.write_str("\\\"")?,
                Some('\\') => f.write_str("\\\\")?,
                Some('\n') => f.write_str("\\n")?,
                Some('\r') => f.write_str("\\r")?,
                Some('\t') => f.write_str("\\t")?,
                // Terminals act on some, and some readers of lines take others for line breaks.
                Some(other) => write!(f, "\\u{:04x}", u32::from(other))?,
                None => {}
            }
            rest = chars.as_str();
        }
        f.write_str(rest)?;
        f.write_char('"')
    }
}

/// Returns the text of a message by `Debug`, and the number of bytes that go beyond `limit`. The text ends at a whole
/// character.
pub(crate) fn text_of(message: &dyn Debug, limit: usize) -> (String, usize) {
    struct Limited {
        text: String,
        limit: usize,
        cut: usize,
    }
    impl fmt::Write for Limited {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            let room = self.limit - self.text.len();
            let end = match self.cut == 0 {
                true if part.len() <= room => part.len(),
                true => (0..=room).rev().find(|end| part.is_char_boundary(*end)).unwrap_or(0),
                false => 0,
            };
            self.text.push_str(&part[..end]);
            self.cut += part.len() - end;
            Ok(())
        }
    }
    let mut limited = Limited { text: String::new(), limit, cut: 0 };
    // The text is made by user code.
    let written = guarded(|| {
        write!(limited, "{message:?}")?;
        Ok(())
    });
    if let Err(failure) = written {
        let _ = write!(limited, "<`Debug` of the message failed>");
        drop_guarded(failure);
    }
    (limited.text, limited.cut)
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::{DumpDirection, DumpRecord, OmittedAtEnd, text_of};
    use std::fmt;
    use std::time::{Duration, UNIX_EPOCH};

    fn record() -> DumpRecord {
        DumpRecord {
            time: UNIX_EPOCH + Duration::new(7, 5_000),
            direction: DumpDirection::In,
            path: "/user/a".to_owned(),
            to: None,
            message_type: "u8",
            message: "1".to_owned(),
            cut: 0,
            omitted: 0,
        }
    }

    #[test]
    fn a_record_is_a_line_with_the_keys_that_it_has() {
        let plain = r#"{"time":7.000005,"direction":"in","path":"/user/a","type":"u8","message":"1"}"#;
        assert_eq!(record().to_string(), plain);
        let full = DumpRecord {
            direction: DumpDirection::Out,
            to: Some("b\"".to_owned()),
            message: "a\n\u{1}\u{2028}\\".to_owned(),
            cut: 3,
            omitted: 4,
            ..record()
        };
        let line = r#"{"time":7.000005,"direction":"out","path":"/user/a","to":"b\"","type":"u8","message":"a\n\u0001\u2028\\","cut":3,"omitted":4}"#;
        assert_eq!(full.to_string(), line);
        let end = OmittedAtEnd { time: UNIX_EPOCH, omitted: 9 };
        assert_eq!(end.to_string(), r#"{"time":0.000000,"omitted":9}"#);
    }

    #[test]
    fn a_long_text_is_cut_at_a_whole_character() {
        assert_eq!(text_of(&"äää", 100), ("\"äää\"".to_owned(), 0));
        assert_eq!(text_of(&"äää", 4), ("\"ä".to_owned(), 5));
        assert_eq!(text_of(&[1, 2, 3], 0), (String::new(), 9));
    }

    #[test]
    fn a_message_whose_text_panics_is_said_to() {
        struct Shy;
        impl fmt::Debug for Shy {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("Shy")?;
                panic!("planted")
            }
        }
        assert_eq!(text_of(&Shy, 100).0, "Shy<`Debug` of the message failed>");
    }
}
