//! Cuts syslog frames out of a byte stream, as RFC 6587 has them: counted octets, `123 <34>1 …`, or up to a line
//! feed, `<34>1 …\n`. Senders do not say which they use, so each frame shows it by how it begins: with a count,
//! or with anything else.
//!
//! A frame longer than the limit is cut there, and said to be: what lies behind is skipped, and the next frame is
//! found all the same.

/// A count has at most so many digits; a longer number is no count.
const COUNT_DIGITS_MAX: usize = 9;

/// A frame, or what is to be done before there is one.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A frame; so many bytes of the input are used up with it.
    Frame { frame: Frame<'a>, used: usize },
    /// So many bytes are used up, and there may be a frame behind them.
    Skip { used: usize, empty_lines: u64 },
    /// The input holds no whole frame.
    NeedMore,
}

/// The bytes between the frame's borders.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub struct Frame<'a> {
    pub bytes: &'a [u8],
    pub whole: Whole,
}

/// Whether a frame is as its sender made it.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Whole {
    Yes,
    /// It is longer than the limit; the rest is not here.
    TooLong,
    /// The stream has ended within it.
    CutOff,
}

/// How the stream stands where the input ends.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Tail {
    /// More may come.
    Open,
    /// The sender has ended it: what is left without a line feed is a line.
    Ended,
    /// It was broken off: nobody knows what would have come.
    Broken,
}

/// Where in the stream we are. The bytes themselves stay with the caller, who takes those used up off the front.
#[derive(Debug)]
pub struct Framer {
    frame_max: usize,
    /// How much of the input has been searched for a line feed in vain.
    searched: usize,
    skipping: Skipping,
}

/// The rest of a frame that was too long.
#[derive(Debug, PartialEq, Eq)]
enum Skipping {
    Nothing,
    Octets(usize),
    ToLineFeed,
}

impl Framer {
    /// Frames hold at most `frame_max` bytes, at least 1.
    pub fn new(frame_max: usize) -> Self {
        Self { frame_max: frame_max.max(1), searched: 0, skipping: Skipping::Nothing }
    }

    /// What comes next in `input`, which begins behind what was used up before.
    pub fn next<'a>(&mut self, input: &'a [u8], tail: Tail) -> Step<'a> {
        if input.is_empty() {
            return Step::NeedMore;
        }
        if let Some(used) = self.skip(input) {
            return Step::Skip { used, empty_lines: 0 };
        }
        match count(input, tail) {
            Count::Octets { len, digits } => self.counted(input, len, digits, tail),
            Count::None => self.line(input, tail),
            Count::NeedMore => Step::NeedMore,
        }
    }

    /// Uses up what is left of a frame that was too long.
    fn skip(&mut self, input: &[u8]) -> Option<usize> {
        let (used, left) = match self.skipping {
            Skipping::Nothing => return None,
            Skipping::Octets(count) => {
                let used = count.min(input.len());
                let left = count - used;
                (used, if left == 0 { Skipping::Nothing } else { Skipping::Octets(left) })
            }
            Skipping::ToLineFeed => match line_feed(input) {
                Some(at) => (at + 1, Skipping::Nothing),
                None => (input.len(), Skipping::ToLineFeed),
            },
        };
        self.skipping = left;
        Some(used)
    }

    fn counted<'a>(&mut self, input: &'a [u8], len: usize, digits: usize, tail: Tail) -> Step<'a> {
        let begin = digits + 1;
        let body = input.get(begin..).unwrap_or_default();
        if let Some(bytes) = body.get(..len.min(self.frame_max)) {
            let used = begin + bytes.len();
            let frame = if len > self.frame_max {
                self.skipping = Skipping::Octets(len - self.frame_max);
                Frame { bytes, whole: Whole::TooLong }
            } else {
                // Some senders count a line feed at the end, too.
                let bytes = bytes.strip_suffix(b"\n").map_or(bytes, without_carriage_return);
                Frame { bytes, whole: Whole::Yes }
            };
            return Step::Frame { frame, used };
        }
        if tail == Tail::Open {
            return Step::NeedMore;
        }
        // Body and count, so that nothing that was read is missing.
        let frame = Frame { bytes: input, whole: Whole::CutOff };
        Step::Frame { frame, used: input.len() }
    }

    fn line<'a>(&mut self, input: &'a [u8], tail: Tail) -> Step<'a> {
        let unsearched = input.get(self.searched..).unwrap_or_default();
        let found = line_feed(unsearched).map(|at| self.searched + at);
        self.searched = 0;
        match found {
            Some(end) if end <= self.frame_max => {
                let bytes = without_carriage_return(&input[..end]);
                if bytes.is_empty() {
                    return Step::Skip { used: end + 1, empty_lines: 1 };
                }
                Step::Frame { frame: Frame { bytes, whole: Whole::Yes }, used: end + 1 }
            }
            None if input.len() <= self.frame_max => match tail {
                Tail::Open => {
                    self.searched = input.len();
                    Step::NeedMore
                }
                Tail::Ended | Tail::Broken => {
                    let whole = if tail == Tail::Ended { Whole::Yes } else { Whole::CutOff };
                    Step::Frame { frame: Frame { bytes: input, whole }, used: input.len() }
                }
            },
            _ => {
                self.skipping = Skipping::ToLineFeed;
                let bytes = &input[..self.frame_max];
                Step::Frame { frame: Frame { bytes, whole: Whole::TooLong }, used: self.frame_max }
            }
        }
    }
}

/// What a frame begins with.
enum Count {
    Octets { len: usize, digits: usize },
    None,
    NeedMore,
}

/// `MSG-LEN SP`, where the length is a number without leading zeros.
fn count(input: &[u8], tail: Tail) -> Count {
    if !matches!(input.first(), Some(b'1'..=b'9')) {
        return Count::None;
    }
    let mut len = 0usize;
    for (digits, &byte) in input.iter().enumerate() {
        match byte {
            b'0'..=b'9' if digits < COUNT_DIGITS_MAX => len = len * 10 + usize::from(byte - b'0'),
            b' ' => return Count::Octets { len, digits },
            _ => return Count::None,
        }
    }
    if tail == Tail::Open { Count::NeedMore } else { Count::None }
}

fn line_feed(input: &[u8]) -> Option<usize> {
    input.iter().position(|&byte| byte == b'\n')
}

fn without_carriage_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All frames of a stream that comes in pieces of this size.
    fn frames(stream: &[u8], piece: usize, max: usize, tail: Tail) -> Vec<(String, Whole)> {
        let (mut framer, mut buffer, mut found) = (Framer::new(max), Vec::new(), Vec::new());
        let mut pieces = stream.chunks(piece);
        loop {
            let next = pieces.next();
            buffer.extend_from_slice(next.unwrap_or_default());
            let now = if next.is_some() { Tail::Open } else { tail };
            loop {
                let used = match framer.next(&buffer, now) {
                    Step::Frame { frame, used } => {
                        found.push((String::from_utf8_lossy(frame.bytes).into_owned(), frame.whole));
                        used
                    }
                    Step::Skip { used, .. } => used,
                    Step::NeedMore => break,
                };
                assert!(used > 0, "each step uses something up");
                buffer.drain(..used);
            }
            if next.is_none() {
                return found;
            }
        }
    }

    #[test]
    fn both_kinds_of_frames_are_found_however_the_bytes_arrive() {
        let stream = b"<34>one\n5 <34>a<35>two\r\n\n\n7 with\n\n!6 <34>b\n<36>three";
        let expected = ["<34>one", "<34>a", "<35>two", "with\n\n!", "<34>b", "<36>three"];
        for piece in 1..stream.len() {
            let found = frames(stream, piece, 100, Tail::Ended);
            assert!(found.iter().all(|(_, whole)| *whole == Whole::Yes), "{found:?}");
            assert_eq!(found.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_frame_beyond_the_limit_is_cut_there_and_the_next_one_found() {
        let long = "x".repeat(50);
        let stream = format!("<1>{long}\n<2>b\n60 <3>{long}1234567<4>d\n10 1234567890<5>e\n");
        for piece in 1..stream.len() {
            let found = frames(stream.as_bytes(), piece, 10, Tail::Ended);
            let found: Vec<_> = found.iter().map(|(text, whole)| (text.as_str(), *whole)).collect();
            assert_eq!(
                found,
                [
                    ("<1>xxxxxxx", Whole::TooLong),
                    ("<2>b", Whole::Yes),
                    ("<3>xxxxxxx", Whole::TooLong),
                    ("<4>d", Whole::Yes),
                    ("1234567890", Whole::Yes),
                    ("<5>e", Whole::Yes),
                ],
                "in pieces of {piece}"
            );
        }
    }

    #[test]
    fn a_number_that_is_no_count_begins_a_line() {
        for line in ["12345678901 x", "12x", "0 x", "007 x", "12\t<3>", "9", "2147483648"] {
            let found = frames(format!("{line}\n<1>next\n").as_bytes(), 3, 100, Tail::Ended);
            assert_eq!(found, [(line.to_owned(), Whole::Yes), ("<1>next".to_owned(), Whole::Yes)]);
        }
    }

    #[test]
    fn what_the_end_of_the_stream_cuts_off_is_kept_and_said_to_be() {
        let one = |text: &str, whole| vec![(text.to_owned(), whole)];
        assert_eq!(frames(b"<1>li", 2, 100, Tail::Ended), one("<1>li", Whole::Yes));
        assert_eq!(frames(b"<1>li", 2, 100, Tail::Broken), one("<1>li", Whole::CutOff));
        for tail in [Tail::Ended, Tail::Broken] {
            assert_eq!(frames(b"20 <1>li", 2, 100, tail), one("20 <1>li", Whole::CutOff));
        }
        assert_eq!(frames(b"20", 2, 100, Tail::Ended), one("20", Whole::Yes));
        assert_eq!(frames(b"<1>li", 2, 100, Tail::Open), []);
    }

    #[test]
    fn a_length_that_no_machine_holds_is_no_reason_to_allocate() {
        let found = frames(b"999999999 <1>x", 4, 100, Tail::Ended);
        assert_eq!(found, [("999999999 <1>x".to_owned(), Whole::CutOff)]);
    }
}
