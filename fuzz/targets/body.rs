//! Bodies of messages, as they come from another node.
//!
//! The input is a body, which is read as a type that nests, has lists of values without bytes, and texts. The following must
//! hold:
//! - A body that is read is written in one form, which is read as the same value.
//! - A body in this form that is cut, or has a byte more, is refused.
//! - A value is no deeper than the limit, and has no more elements than bytes and 64.

use pointsman::remote::fuzz_hooks::{BODY_DEPTH, read_body, write_body};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Body {
    Number(u64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Body>),
    Named(BTreeMap<String, Body>),
    Maybe(Option<Box<Body>>),
    /// Values that take no bytes.
    Units(Vec<()>),
    Pair(bool, char),
}

impl Body {
    fn depth(&self) -> u32 {
        let deepest = |depths: &mut dyn Iterator<Item = u32>| 1 + depths.max().unwrap_or(0);
        match self {
            Body::List(list) => deepest(&mut list.iter().map(Body::depth)),
            Body::Named(named) => deepest(&mut named.values().map(Body::depth)),
            Body::Maybe(Some(body)) => 1 + body.depth(),
            _ => 1,
        }
    }

    fn elements(&self) -> usize {
        match self {
            Body::List(list) => list.len() + list.iter().map(Body::elements).sum::<usize>(),
            Body::Named(named) => named.len() + named.values().map(Body::elements).sum::<usize>(),
            Body::Maybe(Some(body)) => body.elements(),
            Body::Bytes(bytes) => bytes.len(),
            Body::Units(units) => units.len(),
            _ => 0,
        }
    }
}

pub fn check(data: &[u8]) {
    let Some(body) = read_body::<Body>(data) else { return };
    assert!(body.depth() <= BODY_DEPTH, "{} levels", body.depth());
    assert!(body.elements() <= data.len() + 64, "{} elements of {} bytes", body.elements(), data.len());
    let written = write_body(&body);
    assert_eq!(read_body::<Body>(&written), Some(body));
    for end in 0..written.len() {
        assert_eq!(read_body::<Body>(&written[..end]), None, "it ends at {end}");
    }
    let mut longer = written;
    longer.push(0);
    assert_eq!(read_body::<Body>(&longer), None);
}
