//! Control frames, as they come from another node.
//!
//! The input is a frame. The following must hold:
//! - A frame that is read is written in one form, which is read as the same message.
//! - A frame in this form that is cut, or has a byte more, is refused.

use pointsman::remote::fuzz_hooks::{CONTROL_PREFIX, rewrite_control};

pub fn check(data: &[u8]) {
    let Some(written) = rewrite_control(data) else { return };
    assert_eq!(rewrite_control(&written).as_deref(), Some(&*written));
    for end in CONTROL_PREFIX..written.len() {
        assert_eq!(rewrite_control(&written[..end]), None, "it ends at {end}");
    }
    let mut longer = written;
    longer.push(0);
    assert_eq!(rewrite_control(&longer), None);
}
