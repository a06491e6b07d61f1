//! Batches of envelopes, as they come from another node.
//!
//! The input is a frame. The following must hold:
//! - A batch that is read is written as it came: no two frames mean the same.
//! - A frame that is cut, or has a byte more, is refused.
//! - A body above the limit is refused.

use pointsman::remote::fuzz_hooks::rewrite_batch;

const LANES: u8 = 4;
const BODY_MAX: usize = 1000;

/// The bytes of the header.
const HEADER: usize = 72;

pub fn check(data: &[u8]) {
    let Some(again) = rewrite_batch(data, LANES, BODY_MAX) else { return };
    assert_eq!(again, data);
    assert!(data[4] < LANES, "a lane that there is not");
    assert!(data.len() == HEADER || rewrite_batch(&data[..data.len() - 1], LANES, BODY_MAX).is_none());
    let mut longer = data.to_vec();
    longer.push(0);
    assert!(rewrite_batch(&longer, LANES, BODY_MAX).is_none());
}
