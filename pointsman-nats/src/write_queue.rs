//! The bytes that wait for the socket of one connection, in *segments*: whole operations of the protocol.
//!
//! A segment whose last byte was written is gone, and is never written again. When the connection is lost, a segment that was
//! not begun goes back to its origin. A *begun* one was no whole operation for the server, so it stays, and is the first
//! that the next connection writes, with the same bytes.
//!
//! Answers (`PONG`, `CONNECT`) go before all segments that are not begun.

use std::collections::VecDeque;
use std::io::IoSlice;

/// Bytes of answers may wait up to here; a server that asks for more sends too many `PING`s.
pub(crate) const ANSWERS_MAX: usize = 64 * 1024;

const CRLF: &[u8] = b"\r\n";

struct Segment<T> {
    /// The line of the operation, or answers.
    head: Vec<u8>,
    /// The payload of a frame; CRLF follows it.
    frame: Option<Vec<u8>>,
    /// The place that the frame goes back to.
    origin: Option<T>,
    /// A lost connection had begun it.
    is_kept: bool,
}

impl<T> Segment<T> {
    fn parts(&self) -> [&[u8]; 3] {
        match &self.frame {
            Some(frame) => [&self.head, frame, CRLF],
            None => [&self.head, &[], &[]],
        }
    }

    fn len(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }
}

/// A segment that did not leave. See [`WriteQueue::lose_connection`].
pub(crate) struct Unsent<T> {
    pub(crate) frame: Vec<u8>,
    pub(crate) origin: T,
}

/// The frames that wait for a socket. `T` is the place that a frame goes back to.
pub(crate) struct WriteQueue<T> {
    segments: VecDeque<Segment<T>>,
    /// The bytes of the first segment that are written.
    written: usize,
    /// So many segments are begun, perhaps without a byte written.
    begun: usize,
    /// The bytes of all segments that are not written.
    bytes: usize,
    /// The bytes of these that are answers.
    answers: usize,
}

impl<T> WriteQueue<T> {
    pub(crate) fn new() -> Self {
        Self { segments: VecDeque::new(), written: 0, begun: 0, bytes: 0, answers: 0 }
    }

    /// The bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// The bytes of answers that wait.
    pub(crate) fn answers(&self) -> usize {
        self.answers
    }

    /// Puts answers before the segments that are not begun, behind answers that wait there.
    pub(crate) fn answer(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.bytes += bytes.len();
        self.answers += bytes.len();
        let mut at = self.begun;
        while self.segments.get(at).is_some_and(|segment| segment.frame.is_none()) {
            at += 1;
        }
        match at.checked_sub(1).filter(|last| *last >= self.begun) {
            Some(last) => self.segments[last].head.extend_from_slice(bytes),
            None => {
                let segment = Segment { head: bytes.to_vec(), frame: None, origin: None, is_kept: false };
                self.segments.insert(at, segment);
            }
        }
    }

    /// Puts a frame behind all others, with the line of its operation. Without an origin it is lost with the connection.
    pub(crate) fn push(&mut self, head: Vec<u8>, frame: Vec<u8>, origin: Option<T>) {
        let segment = Segment { head, frame: Some(frame), origin, is_kept: false };
        self.bytes += segment.len();
        self.segments.push_back(segment);
    }

    /// The bytes to write next, at most about `max` of them in at most `slices_max` pieces.
    pub(crate) fn slices(&self, max: usize, slices_max: usize) -> Vec<IoSlice<'_>> {
        let mut slices = Vec::with_capacity(slices_max.min(3 * self.segments.len().min(64)));
        let (mut skip, mut left) = (self.written, max);
        for part in self.segments.iter().flat_map(Segment::parts) {
            if left == 0 || slices.len() == slices_max {
                break;
            }
            let skipped = skip.min(part.len());
            skip -= skipped;
            let part = &part[skipped..];
            let taken = part.len().min(left);
            left -= taken;
            if taken > 0 {
                slices.push(IoSlice::new(&part[..taken]));
            }
        }
        slices
    }

    /// The bytes to write while the connection is not up: answers alone.
    pub(crate) fn slices_of_answers(&self) -> Vec<IoSlice<'_>> {
        // Nothing else is begun then, so they come first.
        self.slices(self.answers.saturating_sub(self.written), usize::MAX)
    }

    /// The first so many bytes are on their way: in a record of TLS that is not written to its end.
    pub(crate) fn begin(&mut self, count: usize) {
        let mut end = self.written + count;
        let mut begun = 0;
        for segment in &self.segments {
            if end == 0 {
                break;
            }
            begun += 1;
            end = end.saturating_sub(segment.len());
        }
        self.begun = self.begun.max(begun);
    }

    /// The first so many bytes are written. `done` gets each frame that has an origin, with its last byte.
    pub(crate) fn advance(&mut self, count: usize, mut done: impl FnMut(Vec<u8>, T)) {
        self.bytes -= count;
        self.written += count;
        while let Some(first) = self.segments.front() {
            let len = first.len();
            if self.written < len {
                break;
            }
            self.written -= len;
            self.begun = self.begun.saturating_sub(1);
            if first.frame.is_none() {
                self.answers -= len;
            }
            if let Some(Segment { frame: Some(frame), origin: Some(origin), .. }) = self.segments.pop_front()
            {
                done(frame, origin);
            }
        }
        if self.written > 0 {
            self.begun = self.begun.max(1);
        }
    }

    /// The connection is lost. Begun frames with an origin stay, to be written anew from their beginning. The others with an
    /// origin are returned, the last one first; answers, and frames without an origin, are gone.
    pub(crate) fn lose_connection(&mut self) -> Vec<Unsent<T>> {
        let begun = std::mem::take(&mut self.begun);
        self.written = 0;
        let mut unsent = Vec::new();
        let mut kept = VecDeque::new();
        for (at, segment) in std::mem::take(&mut self.segments).into_iter().enumerate() {
            match segment {
                Segment { origin: Some(_), is_kept, .. } if is_kept || at < begun => {
                    kept.push_back(Segment { is_kept: true, ..segment });
                }
                Segment { frame: Some(frame), origin: Some(origin), .. } => {
                    unsent.push(Unsent { frame, origin });
                }
                _ => {}
            }
        }
        unsent.reverse();
        self.segments = kept;
        self.bytes = self.segments.iter().map(Segment::len).sum();
        self.answers = 0;
        unsent
    }

    /// Takes out the frames that are longer than a server takes, of those that the lost connection had begun.
    pub(crate) fn drop_longer(&mut self, max: usize) -> Vec<Unsent<T>> {
        let mut dropped = Vec::new();
        for segment in std::mem::take(&mut self.segments) {
            match segment {
                Segment { frame: Some(frame), origin: Some(origin), .. } if frame.len() > max => {
                    dropped.push(Unsent { frame, origin });
                }
                other => self.segments.push_back(other),
            }
        }
        self.bytes = self.segments.iter().map(Segment::len).sum::<usize>() - self.written;
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn text(slices: &[IoSlice<'_>]) -> String {
        slices.iter().map(|slice| String::from_utf8_lossy(slice).into_owned()).collect()
    }

    fn queue(frames: &[&str]) -> WriteQueue<u8> {
        let mut queue = WriteQueue::new();
        for frame in frames {
            queue.push(format!("PUB a {}\r\n", frame.len()).into_bytes(), frame.as_bytes().to_vec(), Some(7));
        }
        queue
    }

    fn frames(unsent: Vec<Unsent<u8>>) -> Vec<String> {
        unsent.into_iter().map(|unsent| String::from_utf8(unsent.frame).unwrap()).collect()
    }

    #[test]
    fn frames_are_written_as_operations_and_no_byte_twice() {
        let mut queue = queue(&["one", "two"]);
        assert_eq!(text(&queue.slices(usize::MAX, 64)), "PUB a 3\r\none\r\nPUB a 3\r\ntwo\r\n");
        queue.advance(11, |_, _| {});
        assert_eq!(text(&queue.slices(usize::MAX, 64)), "e\r\nPUB a 3\r\ntwo\r\n");
        assert_eq!(text(&queue.slices(5, 64)), "e\r\nPU");
        assert_eq!(text(&queue.slices(usize::MAX, 2)), "e\r\n");
        queue.advance(17, |_, _| {});
        assert!(queue.len() == 0 && queue.slices(usize::MAX, 64).is_empty());
        assert!(queue.lose_connection().is_empty(), "what was written is never written again");
    }

    #[test]
    fn answers_go_before_frames_and_never_into_one() {
        let mut queue = queue(&["one", "two"]);
        queue.answer(b"CONNECT {}\r\n");
        queue.answer(b"PING\r\n");
        assert_eq!(text(&queue.slices_of_answers()), "CONNECT {}\r\nPING\r\n");
        queue.advance(5, |_, _| {});
        assert_eq!(text(&queue.slices_of_answers()), "CT {}\r\nPING\r\n");
        queue.answer(b"PONG\r\n");
        assert_eq!(text(&queue.slices_of_answers()), "CT {}\r\nPING\r\nPONG\r\n");
        queue.advance(19 + 4, |_, _| {});
        assert_eq!((queue.answers(), queue.slices_of_answers().len()), (0, 0));
        queue.answer(b"PONG\r\n");
        assert_eq!(text(&queue.slices(usize::MAX, 64)), "a 3\r\none\r\nPONG\r\nPUB a 3\r\ntwo\r\n");
    }

    #[test]
    fn a_lost_connection_keeps_what_was_begun_and_returns_what_was_not() {
        let mut queue = queue(&["one", "two", "three"]);
        queue.push(b"PUB b 1\r\n".to_vec(), b"c".to_vec(), None);
        queue.answer(b"PONG\r\n");
        queue.advance(6 + 14 + 1, |_, _| {});
        assert_eq!(frames(queue.lose_connection()), ["three"]);
        // The connection after it is lost before anything of the frame is written: it stays all the same.
        queue.answer(b"CONNECT {}\r\n");
        assert!(queue.lose_connection().is_empty());
        queue.answer(b"CONNECT {}\r\n");
        assert_eq!(text(&queue.slices_of_answers()), "CONNECT {}\r\n");
        assert_eq!(text(&queue.slices(usize::MAX, 64)), "CONNECT {}\r\nPUB a 3\r\ntwo\r\n");
    }

    #[test]
    fn a_frame_whose_crlf_is_missing_was_no_whole_operation() {
        let mut queue = queue(&["one"]);
        queue.advance(13, |_, _| {});
        assert!(queue.lose_connection().is_empty());
        assert_eq!(text(&queue.slices(usize::MAX, 64)), "PUB a 3\r\none\r\n");
    }

    #[test]
    fn frames_in_a_record_of_tls_are_begun_together() {
        let mut queue = queue(&["one", "two", "three"]);
        queue.begin(15);
        queue.answer(b"PONG\r\n");
        assert_eq!(
            text(&queue.slices(usize::MAX, 64)),
            "PUB a 3\r\none\r\nPUB a 3\r\ntwo\r\nPONG\r\nPUB a 5\r\nthree\r\n"
        );
        assert_eq!(frames(queue.lose_connection()), ["three"]);
        assert_eq!(text(&queue.slices(usize::MAX, 64)), "PUB a 3\r\none\r\nPUB a 3\r\ntwo\r\n");
    }

    #[test]
    fn a_kept_frame_that_the_next_server_would_not_take_is_taken_out() {
        let mut queue = queue(&["longer", "two"]);
        queue.begin(20);
        assert!(queue.lose_connection().is_empty());
        queue.answer(b"PONG\r\n");
        queue.advance(2, |_, _| {});
        assert_eq!(frames(queue.drop_longer(5)), ["longer"]);
        assert_eq!(text(&queue.slices(usize::MAX, 64)), "NG\r\nPUB a 3\r\ntwo\r\n");
        assert_eq!(queue.len(), 4 + 14);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push(usize),
        PushWithoutOrigin,
        Answer(usize),
        /// So many bytes at most, and those of a record of TLS are begun before.
        Write(usize, bool),
        Lose,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..40usize).prop_map(Step::Push),
            1 => Just(Step::PushWithoutOrigin),
            2 => (1..3usize).prop_map(Step::Answer),
            5 => (1..60usize, any::<bool>()).prop_map(|(max, tls)| Step::Write(max, tls)),
            1 => Just(Step::Lose),
        ]
    }

    /// The bodies of the operations that a connection has got whole.
    fn whole_operations(mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut bodies = Vec::new();
        while let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") {
            let line = std::str::from_utf8(&bytes[..end]).expect("an operation begins here");
            bytes = &bytes[end + 2..];
            if line == "PONG" {
                continue;
            }
            let len: usize = line.strip_prefix("PUB a ").expect("an operation").parse().expect("a length");
            if bytes.len() < len + 2 {
                break;
            }
            assert_eq!(&bytes[len..len + 2], b"\r\n");
            bodies.push(bytes[..len].to_vec());
            bytes = &bytes[len + 2..];
        }
        bodies
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

        /// Each connection gets whole operations, in order. A frame with an origin is written whole once, or returned once, or
        /// waits; those that are returned come last first.
        #[test]
        fn each_frame_is_written_once_or_returned(steps in vec(step(), 0..80)) {
            let mut queue = WriteQueue::new();
            let mut connection = Vec::new();
            let mut serial = 0u32;
            let (mut pushed, mut written, mut returned) = (Vec::new(), Vec::new(), Vec::new());
            let mut done = Vec::new();
            for step in steps {
                match step {
                    Step::Push(len) => {
                        serial += 1;
                        let mut frame = serial.to_le_bytes().to_vec();
                        frame.resize(4 + len, b'x');
                        pushed.push(frame.clone());
                        queue.push(format!("PUB a {}\r\n", frame.len()).into_bytes(), frame, Some(()));
                    }
                    Step::PushWithoutOrigin => queue.push(b"PUB a 1\r\n".to_vec(), b"c".to_vec(), None),
                    Step::Answer(count) => queue.answer(&b"PONG\r\n".repeat(count)),
                    Step::Write(max, tls) => {
                        let bytes: Vec<u8> = queue.slices(max, 5).iter().flat_map(|slice| slice.to_vec()).collect();
                        if tls {
                            queue.begin(bytes.len());
                        }
                        if !tls || max % 2 == 0 {
                            queue.advance(bytes.len(), |frame, ()| done.push(frame));
                            connection.extend_from_slice(&bytes);
                        }
                    }
                    Step::Lose => {
                        written.extend(whole_operations(&connection).into_iter().filter(|body| body.len() > 1));
                        connection.clear();
                        let unsent: Vec<Vec<u8>> =
                            queue.lose_connection().into_iter().map(|unsent| unsent.frame).collect();
                        let serials: Vec<&[u8]> = unsent.iter().map(|frame| &frame[..4]).collect();
                        prop_assert!(serials.windows(2).all(|pair| pair[0] > pair[1]));
                        returned.extend(unsent);
                        prop_assert_eq!(queue.answers(), 0);
                    }
                }
                let waiting: usize = queue.slices(usize::MAX, usize::MAX).iter().map(|slice| slice.len()).sum();
                prop_assert_eq!(queue.len(), waiting);
            }
            let rest: Vec<u8> = queue.slices(usize::MAX, usize::MAX).iter().flat_map(|slice| slice.to_vec()).collect();
            let whole = whole_operations(&connection).into_iter().filter(|body| body.len() > 1);
            prop_assert_eq!(done, written.iter().cloned().chain(whole).collect::<Vec<_>>());
            connection.extend_from_slice(&rest);
            written.extend(whole_operations(&connection).into_iter().filter(|body| body.len() > 1));
            let mut in_order = written.clone();
            in_order.sort();
            prop_assert_eq!(&written, &in_order);
            let mut all = [written, returned].concat();
            all.sort();
            prop_assert_eq!(all, pushed);
        }
    }
}
